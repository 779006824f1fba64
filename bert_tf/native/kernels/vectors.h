// Numbers as the kernels read, compute and write them: float32 inside, float32 or bfloat16 in memory.

#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

// A loop whose turns do not depend on each other, though arrays may be the same.
#define EACH(i, count) _Pragma("GCC ivdep") for (int64_t i = 0; i < (count); ++i)

namespace bert_tf {
struct BFloat16 {
  uint16_t bits;
};

template <typename To, typename From>
To bits_as(From x) {
  To same;
  std::memcpy(&same, &x, sizeof same);
  return same;
}

inline float widened(float x) { return x; }
inline float widened(BFloat16 x) { return bits_as<float>(static_cast<uint32_t>(x.bits) << 16); }

inline void store(float x, float* to) { *to = x; }
inline void store(float x, BFloat16* to) {  // to the nearest, ties to even; what is no number stays so
  const uint32_t bits = bits_as<uint32_t>(x), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  to->bits = static_cast<uint16_t>(x != x ? 0x7fc0 : rounded);
}

// A product and a sum that the compiler does not reorder.
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

// e^x to 2 units in the last place: 2^n times Taylor's polynomial on [-ln 2 / 2, ln 2 / 2]. Below -87 it is e^-87; x is at most 88.
inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float n = __builtin_rintf(x * 1.44269504f);
  // ln 2 in two parts.
  const float r = fma(n, -1.42860677e-6f, fma(n, -0.693145752f, x));
  float y = fma(1.0f / 5040.0f, r, 1.0f / 720.0f);
  y = fma(fma(y, r, 1.0f / 120.0f), r, 1.0f / 24.0f);
  y = fma(fma(y, r, 1.0f / 6.0f), r, 0.5f);
  y = fma(fma(y, r, 1.0f), r, 1.0f);
  return y * bits_as<float>((static_cast<int32_t>(n) + 127) << 23);
}

// The distribution function of the normal distribution and its density: half of erfc(|x| / sqrt 2), by a polynomial in
// t = 1 / (1 + 0.425 |x| / sqrt 2) that is fitted to erfc(z) e^(z^2) with a largest relative error of 1.5e-7.
struct Normal {
  float distribution, density;
};

inline Normal normal(float x) {
  const float bell = exponential(x * x * -0.5f), size = __builtin_fabsf(x);
  const float t = 1.0f / fma(size, 0.425f * 0.707106781f, 1.0f);
  float p = fma(0.0714783370f, t, -0.313157260f);
  p = fma(fma(p, t, 0.407618284f), t, -0.103251584f);
  p = fma(fma(p, t, 0.255086899f), t, 0.200705916f);
  p = fma(fma(p, t, 0.241840631f), t, 0.239678621f);
  const float tail = 0.5f * p * t * bell;
  return {x < 0.0f ? tail : 1.0f - tail, bell * 0.398942280f};
}
}  // namespace bert_tf
