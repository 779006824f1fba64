// Which elements dropout keeps, by the random numbers of tf.random.stateless_uniform (Salmon et al., 2011: Philox 4x32-10).

#include "ops.h"

namespace bert_tf::dropout {
constexpr int kCounters = 16;  // that are computed side by side; each gives 8 numbers of 16 bits

// One unit: 16 counters from `counter` on, 128 elements.
inline void keep(uint64_t low, uint64_t high, uint32_t key_0, uint32_t key_1, uint32_t dropped, uint8_t* kept) {
  uint32_t a[kCounters], b[kCounters], c[kCounters], d[kCounters];
  for (int i = 0; i < kCounters; ++i) {
    const uint64_t at = low + i, carried = high + (at < low);
    a[i] = static_cast<uint32_t>(at), b[i] = static_cast<uint32_t>(at >> 32);
    c[i] = static_cast<uint32_t>(carried), d[i] = static_cast<uint32_t>(carried >> 32);
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kCounters; ++i) {
      const uint64_t first = static_cast<uint64_t>(a[i]) * 0xD2511F53u, second = static_cast<uint64_t>(c[i]) * 0xCD9E8D57u;
      const uint32_t next_a = static_cast<uint32_t>(second >> 32) ^ b[i] ^ key_0;
      const uint32_t next_c = static_cast<uint32_t>(first >> 32) ^ d[i] ^ key_1;
      b[i] = static_cast<uint32_t>(second), d[i] = static_cast<uint32_t>(first);
      a[i] = next_a, c[i] = next_c;
    }
    key_0 += 0x9E3779B9u, key_1 += 0xBB67AE85u;
  }
  uint32_t words[kCounters * 4];
  for (int i = 0; i < kCounters; ++i) words[4 * i] = a[i], words[4 * i + 1] = b[i], words[4 * i + 2] = c[i], words[4 * i + 3] = d[i];
  for (int i = 0; i < kCounters * 4; ++i) {
    kept[2 * i] = (words[i] & 0xffff) >= dropped;
    kept[2 * i + 1] = (words[i] >> 16) >= dropped;
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
