// Which elements dropout keeps, by the random numbers of tf.random.stateless_uniform (Salmon et al., 2011: Philox 4x32-10).

#include "ops.h"

namespace bert_tf::dropout {
constexpr int kCounters = 16;  // that are computed side by side; each gives 8 numbers of 16 bits
constexpr uint64_t kWord = 0xffffffff;
typedef uint64_t Words __attribute__((vector_size(64)));

// One unit: 16 counters from `counter` on, 128 elements. Words of 32 bits are the lower halves of lanes of 64.
inline void keep(uint64_t low, uint64_t high, uint32_t key_0, uint32_t key_1, uint16_t dropped, uint8_t* kept) {
  Words a[2], b[2], c[2], d[2];
  for (int i = 0; i < 2; ++i) {
    a[i] = Words{0, 1, 2, 3, 4, 5, 6, 7} + (low + 8 * i), b[i] = a[i] >> 32;
    c[i] = high - reinterpret_cast<Words>(a[i] < low), d[i] = c[i] >> 32;  // a comparison is 0 or -1
  }
  for (int round = 0; round < 10; ++round, key_0 += 0x9E3779B9u, key_1 += 0xBB67AE85u)
    for (int i = 0; i < 2; ++i) {
      const Words first = (a[i] & kWord) * 0xD2511F53u, second = (c[i] & kWord) * 0xCD9E8D57u;
      a[i] = (second >> 32) ^ b[i] ^ key_0, c[i] = (first >> 32) ^ d[i] ^ key_1;
      b[i] = second, d[i] = first;
    }
  for (int i = 0; i < 2; ++i) {
    const Words x = (a[i] & kWord) | b[i] << 32, y = (c[i] & kWord) | d[i] << 32;
    uint64_t pairs[16];
    EACH(j, 8) pairs[2 * j] = x[j], pairs[2 * j + 1] = y[j];
    uint16_t draws[64];
    std::memcpy(draws, pairs, sizeof draws);
    EACH(j, 64) kept[64 * i + j] = draws[j] >= dropped;
  }
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
    parallel(context, (size + kCounters * 8 - 1) / (kCounters * 8), 300, work);
  }

 private:
  int dropped_;
};

REGISTER_OP("BertTfKept").Input("key: uint64").Input("counter: uint64").Input("size: int64").Attr("dropped: int")
    .Output("kept: uint8").SetShapeFn(shaped_as({-1}));
REGISTER_KERNEL_BUILDER(Name("BertTfKept").Device(tensorflow::DEVICE_CPU), KeptElements);
}  // namespace bert_tf::dropout
