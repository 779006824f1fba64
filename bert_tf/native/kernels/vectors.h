// Numbers as the kernels read, compute and write them: float32 inside, float32 or bfloat16 in memory.
//
// Loops over `Element` arrays are written so that the compiler turns them into vector instructions of the machine at hand.

#ifndef BERT_TF_VECTORS_H_
#define BERT_TF_VECTORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

// A loop whose turns do not depend on each other, though arrays may be the same.
#define EACH(i, count) _Pragma("GCC ivdep") for (int64_t i = 0; i < (count); ++i)

namespace bert_tf {

struct BFloat16 {
  uint16_t bits;
};

inline float widened(float x) { return x; }
inline float widened(BFloat16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline void store(float x, float* to) { *to = x; }
inline void store(float x, BFloat16* to) {  // to the nearest, ties to even; what is no number stays so
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  to->bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
}

// e^x to 2 units in the last place: 2^n times Taylor's polynomial on [-ln 2 / 2, ln 2 / 2]. Large arguments give large finite numbers.
inline float exponential(float x) {
  const float low = -87.0f, high = 88.0f;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const float n = __builtin_rintf(x * 1.44269504f);
  // ln 2 in two parts, and explicit products with sums: the compiler may reorder what is written with + and *.
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, x));
  float y = 1.0f / 5040.0f;
  y = __builtin_fmaf(y, r, 1.0f / 720.0f);
  y = __builtin_fmaf(y, r, 1.0f / 120.0f);
  y = __builtin_fmaf(y, r, 1.0f / 24.0f);
  y = __builtin_fmaf(y, r, 1.0f / 6.0f);
  y = __builtin_fmaf(y, r, 0.5f);
  y = __builtin_fmaf(y, r, 1.0f);
  y = __builtin_fmaf(y, r, 1.0f);
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return y * power;
}

// The distribution function of the normal distribution and its density: half of erfc(|x| / sqrt 2), by a polynomial in
// t = 1 / (1 + 0.425 |x| / sqrt 2) that is fitted to erfc(z) e^(z^2) with a largest relative error of 1.5e-7.
struct Normal {
  float distribution, density;
};

inline Normal normal(float x) {
  const float bell = exponential(x * x * -0.5f), size = __builtin_fabsf(x);
  const float t = 1.0f / __builtin_fmaf(size, 0.425f * 0.707106781f, 1.0f);
  float p = 0.0714783370f;
  p = __builtin_fmaf(p, t, -0.313157260f);
  p = __builtin_fmaf(p, t, 0.407618284f);
  p = __builtin_fmaf(p, t, -0.103251584f);
  p = __builtin_fmaf(p, t, 0.255086899f);
  p = __builtin_fmaf(p, t, 0.200705916f);
  p = __builtin_fmaf(p, t, 0.241840631f);
  p = __builtin_fmaf(p, t, 0.239678621f);
  const float tail = 0.5f * p * t * bell;
  return {x < 0.0f ? tail : 1.0f - tail, bell * 0.398942280f};
}

}  // namespace bert_tf

#endif  // BERT_TF_VECTORS_H_
