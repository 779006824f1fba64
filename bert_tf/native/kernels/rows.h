// Rows of one head in the scratch memory of a thread, in float32, padded to whole vectors.

#pragma once
#include "ops.h"
#include "products.h"
#include "squares.h"

namespace bert_tf::attention {
constexpr int kQueries = 64;  // of a sequence that are computed at a time

// Rows of one head in float32 with their bias, [padded(count), padded(K)], zero where padded.
template <typename T>
void load(const T* rows, const float* bias, int64_t count, int64_t width, int64_t head, float scale, float* to) {
  const int64_t stride = padded(head);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < head; k += 16) __builtin_prefetch(rows + (i + 8) * width + k);  // hardware does not follow strides this long
    EACH(k, head) to[i * stride + k] = (widened(rows[i * width + k]) + (bias ? bias[k] : 0.0f)) * scale;
    std::fill(to + i * stride + head, to + (i + 1) * stride, 0.0f);
  }
  std::fill(to + count * stride, to + padded(count) * stride, 0.0f);
}

// [height, width] to [width, height], both whole squares.
void transpose(const float* rows, int64_t height, int64_t width, float* to) {
  for (int64_t i = 0; i < height; i += kSide)
    for (int64_t k = 0; k < width; k += kSide) transpose_square(rows + i * width + k, width, to + k * height + i, height);
}

template <typename T>
void unload(const float* rows, int64_t count, int64_t width, int64_t head, float scale, T* to) {
  for (int64_t i = 0; i < count; ++i) EACH(k, head) store(rows[i * padded(head) + k] * scale, to + i * width + k);
}

// sums[k] += scale (rows[0, k] + rows[1, k] + ...)
void add_rows(const float* rows, int64_t count, int64_t head, float scale, float* sums) {
  for (int64_t k = 0; k < head; k += kLanes) {
    Lanes sum = {};
    for (int64_t i = 0; i < count; ++i) sum += lanes(rows + i * padded(head) + k);
    for (int64_t l = 0; l < std::min<int64_t>(kLanes, head - k); ++l) sums[k + l] += sum[l] * scale;
  }
}

// Floats that a thread keeps from one sequence to the next, handed out in parts.
class Scratch {
 public:
  explicit Scratch(int64_t size) : next_(grown(size)) {}
  float* take(int64_t size) { return std::exchange(next_, next_ + size); }

 private:
  static float* grown(int64_t size) {
    static thread_local std::vector<float> held;
    if (static_cast<int64_t>(held.size()) < size) held.resize(size);
    return held.data();
  }
  float* next_;
};
}  // namespace bert_tf::attention
