// Which elements dropout keeps, by the random numbers of tf.random.stateless_uniform (Salmon et al., 2011: Philox 4x32-10).

#include <immintrin.h>

#include "ops.h"

namespace bert_tf::dropout {
constexpr int kCounters = 8;  // that are computed side by side; each gives 8 numbers of 16 bits
typedef uint64_t Words __attribute__((vector_size(32)));

// The low halves of lanes times a number.
inline Words times(Words x, uint32_t y) {
  return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(x), _mm256_set1_epi64x(y)));
}

// One unit: 8 counters from `counter` on, 64 elements. Words of 32 bits are the low halves of lanes; the high halves are not used.
inline void keep(uint64_t low, uint64_t high, uint32_t key_0, uint32_t key_1, uint16_t dropped, uint8_t* kept) {
  Words a[2], b[2], c[2], d[2];
  for (int i = 0; i < 2; ++i) {
    a[i] = Words{0, 1, 2, 3} + (low + 4 * i), b[i] = a[i] >> 32;
    c[i] = high - reinterpret_cast<Words>(a[i] < low), d[i] = c[i] >> 32;  // a comparison is 0 or -1
  }
  for (int round = 0; round < 10; ++round, key_0 += 0x9E3779B9u, key_1 += 0xBB67AE85u)
    for (int i = 0; i < 2; ++i) {
      const Words first = times(a[i], 0xD2511F53u), second = times(c[i], 0xCD9E8D57u);
      a[i] = (second >> 32) ^ b[i] ^ key_0, c[i] = (first >> 32) ^ d[i] ^ key_1;
      b[i] = second, d[i] = first;
    }
  uint64_t pairs[2 * kCounters];
  for (int i = 0; i < 2; ++i) {
    const Words front = (a[i] & 0xffffffff) | b[i] << 32, back = (c[i] & 0xffffffff) | d[i] << 32;
    for (int lane = 0; lane < 4; ++lane) pairs[8 * i + 2 * lane] = front[lane], pairs[8 * i + 2 * lane + 1] = back[lane];
  }
  uint16_t draws[8 * kCounters];
  std::memcpy(draws, pairs, sizeof draws);
  EACH(i, 8 * kCounters) kept[i] = draws[i] >= dropped;
}

class KeptElements : public OpKernel {
 public:
  explicit KeptElements(Construction* c) : OpKernel(c), dropped_(attribute<int>(c, "dropped")) {}

  void Compute(OpKernelContext* context) override {
    const int64_t size = context->input(2).scalar<int64_t>()();
    OP_REQUIRES(context, size >= 0, tensorflow::errors::InvalidArgument("a size is negative: ", size));
    ALLOCATE(context, 0, TensorShape({size}), output);
    const auto key = context->input(0).flat<tensorflow::uint64>()(0);
    const auto counter = context->input(1).flat<tensorflow::uint64>();
    const uint64_t low = counter(0), high = counter(1);
    uint8_t* kept = write<uint8_t>(output);
    const auto work = [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) {
        const uint64_t at = low + unit * kCounters;
        const int64_t begin = unit * kCounters * 8, left = size - begin;
        uint8_t tail[kCounters * 8];
        uint8_t* to = left < kCounters * 8 ? tail : kept + begin;
        keep(at, high + (at < low), static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), dropped_, to);
        if (to == tail) std::copy(tail, tail + left, kept + begin);
      }
    };
    parallel(context, (size + kCounters * 8 - 1) / (kCounters * 8), 150, work);
  }

 private:
  int dropped_;
};

REGISTER_OP("BertTfKept").Input("key: uint64").Input("counter: uint64").Input("size: int64").Attr("dropped: int")
    .Output("kept: uint8").SetShapeFn(shaped_as({-1}));
REGISTER_KERNEL_BUILDER(Name("BertTfKept").Device(tensorflow::DEVICE_CPU), KeptElements);
}  // namespace bert_tf::dropout
