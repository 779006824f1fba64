// Products of small matrices, of which one is held in registers.

#ifndef BERT_TF_PRODUCTS_H_
#define BERT_TF_PRODUCTS_H_

#include <cstddef>

namespace bert_tf {

#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 8;
#else
constexpr int kLanes = 8, kRows = 4;
#endif

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline int padded(int size) { return (size + kLanes - 1) / kLanes * kLanes; }

// A matrix in float32; the element of row i and column k lies at data[i * row + k * column].
struct Matrix {
  const float* data;
  ptrdiff_t row, column;
};

template <int R, int V>
inline void tile(Matrix a, const float* b, ptrdiff_t b_row, int inner, float* c, ptrdiff_t c_row, bool adds) {
  Lanes sum[R][V];
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) sum[i][v] = adds ? *reinterpret_cast<const Lanes*>(c + i * c_row + v * kLanes) : Lanes{};
  for (int k = 0; k < inner; ++k) {
    Lanes row[V];
    for (int v = 0; v < V; ++v) row[v] = *reinterpret_cast<const Lanes*>(b + k * b_row + v * kLanes);
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < V; ++v) sum[i][v] += a.data[i * a.row + k * a.column] * row[v];
  }
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) *reinterpret_cast<Lanes*>(c + i * c_row + v * kLanes) = sum[i][v];
}

template <int R>
inline void rows_of_product(Matrix a, const float* b, ptrdiff_t b_row, int inner, int width, float* c, ptrdiff_t c_row, bool adds) {
  int j = 0;
  for (; j + 2 * kLanes <= width; j += 2 * kLanes) tile<R, 2>(a, b + j, b_row, inner, c + j, c_row, adds);
  if (j < width) tile<R, 1>(a, b + j, b_row, inner, c + j, c_row, adds);
}

// c = a b, or c += a b: [rows, inner] times [inner, width], where width is a multiple of kLanes.
inline void product(Matrix a, const float* b, ptrdiff_t b_row, int rows, int inner, int width, float* c, ptrdiff_t c_row, bool adds) {
  int i = 0;
  const auto at = [&](int row) { return Matrix{a.data + row * a.row, a.row, a.column}; };
  for (; i + kRows <= rows; i += kRows) rows_of_product<kRows>(at(i), b, b_row, inner, width, c + i * c_row, c_row, adds);
  for (; i + 2 <= rows; i += 2) rows_of_product<2>(at(i), b, b_row, inner, width, c + i * c_row, c_row, adds);
  if (i < rows) rows_of_product<1>(at(i), b, b_row, inner, width, c + i * c_row, c_row, adds);
}

}  // namespace bert_tf

#endif  // BERT_TF_PRODUCTS_H_
