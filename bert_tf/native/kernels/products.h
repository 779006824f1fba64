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

template <int N>
struct Vector {
  typedef float Type __attribute__((vector_size(N * sizeof(float)), aligned(4), may_alias));
};
typedef Vector<kLanes>::Type Lanes;

inline int padded(int size, int lanes = kLanes) { return (size + lanes - 1) / lanes * lanes; }

template <int N = kLanes>
typename Vector<N>::Type& lanes(float* from) { return *reinterpret_cast<typename Vector<N>::Type*>(from); }
template <int N = kLanes>
typename Vector<N>::Type lanes(const float* from) { return *reinterpret_cast<const typename Vector<N>::Type*>(from); }

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

template <int R, int V, int N>
inline void tile(Matrix a, const float* b, ptrdiff_t b_row, int inner, float* c, ptrdiff_t c_row, bool adds) {
  typename Vector<N>::Type sum[R][V], row[V];
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) sum[i][v] = adds ? lanes<N>(c + i * c_row + v * N) : typename Vector<N>::Type{};
  for (int k = 0; k < inner; ++k) {
    for (int v = 0; v < V; ++v) row[v] = lanes<N>(b + k * b_row + v * N);
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < V; ++v) sum[i][v] += a.data[i * a.row + k * a.column] * row[v];
  }
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) lanes<N>(c + i * c_row + v * N) = sum[i][v];
}

// c = a b, or c += a b: [rows, inner] times [inner, width], where width is a multiple of N, the lanes of a vector.
template <int N = kLanes, int R = kRows>
void product(Matrix a, const float* b, ptrdiff_t b_row, int rows, int inner, int width, float* c, ptrdiff_t c_row, bool adds) {
  for (; rows >= R; rows -= R, a.data += R * a.row, c += R * c_row) {
    int j = 0;
    for (; j + 2 * N <= width; j += 2 * N) tile<R, 2, N>(a, b + j, b_row, inner, c + j, c_row, adds);
    if (j < width) tile<R, 1, N>(a, b + j, b_row, inner, c + j, c_row, adds);
  }
  if constexpr (R > 1) product<N, R / 2>(a, b, b_row, rows, inner, width, c, c_row, adds);
}
}  // namespace bert_tf
