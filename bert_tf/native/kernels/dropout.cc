// Which elements dropout keeps, by the random numbers of tf.random.stateless_uniform (Salmon et al., 2011: Philox 4x32-10).

#include <immintrin.h>

#include "ops.h"
#include "products.h"

namespace bert_tf::dropout {
constexpr int kCounters = 8;  // that are computed side by side; each gives 8 numbers of 16 bits
constexpr int64_t kUnit = 8 * kCounters;  // elements
constexpr int64_t kCycles = 80;  // of a unit, about
constexpr int kWords = kLanes / 2;  // of 64 bits, side by side
constexpr int kVectors = kCounters / kWords;
typedef uint64_t Words __attribute__((vector_size(8 * kWords)));

// The low halves of lanes times a number.
inline Words times(Words x, uint32_t y) {
#ifdef __AVX512F__
  return reinterpret_cast<Words>(_mm512_mul_epu32(reinterpret_cast<__m512i>(x), _mm512_set1_epi64(y)));
#else
  return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(x), _mm256_set1_epi64x(y)));
#endif
}

// One unit: 8 counters from (low, high) on. Words of 32 bits are the low halves of lanes; the high halves are not used.
inline void keep(uint64_t low, uint64_t high, uint32_t key_0, uint32_t key_1, uint16_t dropped, uint8_t* kept) {
  Words a[kVectors], b[kVectors], c[kVectors], d[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    for (int lane = 0; lane < kWords; ++lane) a[i][lane] = low + (kWords * i + lane);
    b[i] = a[i] >> 32;
    c[i] = high - reinterpret_cast<Words>(a[i] < low), d[i] = c[i] >> 32;  // a comparison is 0 or -1
  }
  for (int round = 0; round < 10; ++round, key_0 += 0x9E3779B9u, key_1 += 0xBB67AE85u)
    for (int i = 0; i < kVectors; ++i) {
      const Words first = times(a[i], 0xD2511F53u), second = times(c[i], 0xCD9E8D57u);
      a[i] = (second >> 32) ^ b[i] ^ key_0, c[i] = (first >> 32) ^ d[i] ^ key_1;
      b[i] = second, d[i] = first;
    }
  uint64_t pairs[2 * kCounters];
  for (int i = 0; i < kVectors; ++i) {
    const Words front = (a[i] & 0xffffffff) | b[i] << 32, back = (c[i] & 0xffffffff) | d[i] << 32;
    for (int lane = 0; lane < kWords; ++lane) {
      const int counter = kWords * i + lane;
      pairs[2 * counter] = front[lane], pairs[2 * counter + 1] = back[lane];
    }
  }
  uint16_t draws[kUnit];
  std::memcpy(draws, pairs, sizeof draws);
  EACH(i, kUnit) kept[i] = draws[i] >= dropped;
}

// The random numbers of an array, of which any unit can be drawn alone.
class Stream {
 public:
  Stream(OpKernelContext* context, uint16_t dropped, int64_t size)
      : key_(context->input(0).flat<tensorflow::uint64>()(0)), low_(context->input(1).flat<tensorflow::uint64>()(0)),
        high_(context->input(1).flat<tensorflow::uint64>()(1)), dropped_(dropped), size_(size) {}

  void draw(int64_t unit, uint8_t* kept) const {
    const uint64_t at = low_ + unit * kCounters;
    const int64_t begin = unit * kUnit, left = size_ - begin;
    uint8_t tail[kUnit];
    uint8_t* to = left < kUnit ? tail : kept + begin;
    keep(at, high_ + (at < low_), static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32), dropped_, to);
    if (to == tail) std::copy(tail, tail + left, kept + begin);
  }

 private:
  uint64_t key_, low_, high_;
  uint16_t dropped_;
  int64_t size_;
};

inline int64_t units(int64_t size) { return (size + kUnit - 1) / kUnit; }

class KeptElements : public OpKernel {
 public:
  explicit KeptElements(Construction* c) : OpKernel(c), dropped_(attribute<int>(c, "dropped")) {}

  void Compute(OpKernelContext* context) override {
    OP_REQUIRES_OK(context, counted(context, {{0, 1}, {1, 2}, {2, 1}}));
    const int64_t size = context->input(2).scalar<int64_t>()();
    OP_REQUIRES(context, size >= 0, tensorflow::errors::InvalidArgument("a size is negative: ", size));
    ALLOCATE(context, 0, TensorShape({size}), output);
    uint8_t* kept = write<uint8_t>(output);
    const Stream stream(context, dropped_, size);
    parallel(context, units(size), kCycles, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) stream.draw(unit, kept);
    });
  }

 private:
  int dropped_;
};

// Attention weights [B, H, Q, T]: units of padding alone are not drawn, except the last of a head.
class KeptWeights : public OpKernel {
 public:
  explicit KeptWeights(Construction* c) : OpKernel(c), dropped_(attribute<int>(c, "dropped")) {}

  void Compute(OpKernelContext* context) override {
    OP_REQUIRES_OK(context, counted(context, {{0, 1}, {1, 2}, {2, 4}}));
    const auto* shape = read<int32_t>(context->input(2));
    TensorShape whole;
    OP_REQUIRES_OK(context, tensorflow::TensorShapeUtils::MakeShape(shape, 4, &whole));
    OP_REQUIRES_OK(context, starts_of(context, 3, shape[0], shape[2]));
    OP_REQUIRES_OK(context, starts_of(context, 4, shape[0], shape[3]));
    const auto *query_starts = read<int32_t>(context->input(3)), *key_starts = read<int32_t>(context->input(4));
    const int64_t heads = shape[1], keys = shape[3], size = shape[2] * keys;  // weights of a head
    ALLOCATE(context, 0, whole, output);
    uint8_t* kept = write<uint8_t>(output);
    const Stream stream(context, dropped_, shape[0] * heads * size);
    parallel(context, shape[0] * heads, kCycles * units(size) / 2, [&](int64_t first, int64_t last) {
      for (int64_t head = first; head < last; ++head) {
        const int64_t sequence = head / heads, begin = head * size, own = key_starts[sequence + 1] - key_starts[sequence];
        int64_t unit = units(begin), end = units(begin + size);  // those that begin in this head
        for (int64_t i = 0; i < query_starts[sequence + 1] - query_starts[sequence]; ++i) {
          const int64_t row = begin + i * keys, stop = std::min(end, units(row + own));
          for (unit = std::max(unit, row / kUnit); unit < stop; ++unit) stream.draw(unit, kept);
        }
        if (unit < end) stream.draw(end - 1, kept);  // the next head may begin in it
      }
    });
  }

 private:
  int dropped_;
};

REGISTER_OP("BertTfKept").Input("key: uint64").Input("counter: uint64").Input("size: int64").Attr("dropped: int")
    .Output("kept: uint8").SetShapeFn(shaped_as({-1}));
REGISTER_OP("BertTfKeptWeights").Input("key: uint64").Input("counter: uint64").Input("shape: int32")
    .Input("query_starts: int32").Input("key_starts: int32").Attr("dropped: int").Output("kept: uint8").SetShapeFn(shaped_as({-1}));
REGISTER_KERNEL_BUILDER(Name("BertTfKept").Device(tensorflow::DEVICE_CPU), KeptElements);
REGISTER_KERNEL_BUILDER(Name("BertTfKeptWeights").Device(tensorflow::DEVICE_CPU), KeptWeights);
}  // namespace bert_tf::dropout
