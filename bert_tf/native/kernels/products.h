// Products of small matrices, of which one is held in registers.

#pragma once
#include <immintrin.h>

#include <cstddef>

namespace bert_tf {
#ifdef __AVX512F__  // else AVX2: there are no kernels for other machines, see `compiler.unsuited`
constexpr int kLanes = 16, kRows = 8;
#else
constexpr int kLanes = 8, kRows = 4;
#endif

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline int padded(int size) { return (size + kLanes - 1) / kLanes * kLanes; }

inline Lanes& lanes(float* from) { return *reinterpret_cast<Lanes*>(from); }
inline Lanes lanes(const float* from) { return *reinterpret_cast<const Lanes*>(from); }

inline float largest(Lanes x) {
#ifdef __AVX512F__
  return _mm512_reduce_max_ps(reinterpret_cast<__m512>(x));
#else
  const __m256 all = reinterpret_cast<__m256>(x);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
#endif
}

// A matrix in float32; the element of row i and column k lies at data[i * row + k * column].
struct Matrix {
  const float* data;
  ptrdiff_t row, column;
};

template <int R, int V>
inline void tile(Matrix a, const float* b, ptrdiff_t b_row, int inner, float* c, ptrdiff_t c_row, bool adds) {
  Lanes sum[R][V];
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) sum[i][v] = adds ? lanes(c + i * c_row + v * kLanes) : Lanes{};
  for (int k = 0; k < inner; ++k) {
    Lanes row[V];
    for (int v = 0; v < V; ++v) row[v] = lanes(b + k * b_row + v * kLanes);
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < V; ++v) sum[i][v] += a.data[i * a.row + k * a.column] * row[v];
  }
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) lanes(c + i * c_row + v * kLanes) = sum[i][v];
}

// c = a b, or c += a b: [rows, inner] times [inner, width], where width is a multiple of kLanes.
template <int R = kRows>
void product(Matrix a, const float* b, ptrdiff_t b_row, int rows, int inner, int width, float* c, ptrdiff_t c_row, bool adds) {
  for (; rows >= R; rows -= R, a.data += R * a.row, c += R * c_row) {
    int j = 0;
    for (; j + 2 * kLanes <= width; j += 2 * kLanes) tile<R, 2>(a, b + j, b_row, inner, c + j, c_row, adds);
    if (j < width) tile<R, 1>(a, b + j, b_row, inner, c + j, c_row, adds);
  }
  if constexpr (R > 1) product<R / 2>(a, b, b_row, rows, inner, width, c, c_row, adds);
}
}  // namespace bert_tf
