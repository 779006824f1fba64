// Matrices are transposed by squares that fit into registers.

#pragma once
#include <cstdint>

namespace bert_tf {
constexpr int kSide = 8;  // of the squares that are transposed in registers
typedef float Row __attribute__((vector_size(kSide * sizeof(float)), aligned(4), may_alias));

// Numbers of two rows: pairs at distance `step` change places.
template <int step>
inline __attribute__((always_inline)) void exchange(Row& upper, Row& lower) {
  typedef int Places __attribute__((vector_size(kSide * sizeof(int))));
  Places first, second;
  for (int i = 0; i < kSide; ++i) {
    first[i] = i & step ? i - step + kSide : i;
    second[i] = i & step ? i + kSide : i + step;
  }
  const Row above = __builtin_shuffle(upper, lower, first), below = __builtin_shuffle(upper, lower, second);
  upper = above, lower = below;
}

template <int step>
inline __attribute__((always_inline)) void exchange_all(Row* rows) {
  for (int i = 0; i < kSide; ++i)
    if (!(i & step)) exchange<step>(rows[i], rows[i + step]);
}

// A square: to[j * to_row + i] = from[i * from_row + j].
inline void transpose_square(const float* from, int64_t from_row, float* to, int64_t to_row) {
  Row rows[kSide];
  for (int i = 0; i < kSide; ++i) rows[i] = *reinterpret_cast<const Row*>(from + i * from_row);
  exchange_all<1>(rows), exchange_all<2>(rows), exchange_all<4>(rows);
  for (int i = 0; i < kSide; ++i) *reinterpret_cast<Row*>(to + i * to_row) = rows[i];
}
}  // namespace bert_tf
