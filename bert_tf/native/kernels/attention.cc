// Attention of sequences whose tokens lie one after another as rows, heads side by side (Vaswani et al., 2017).
//
// One sequence and head at a time: products of its own tokens alone, in the cache of a core. Weights are not kept: the gradient
// computes them again from their logarithmic normalizer (Dao et al., 2022). An empty `kept` stands for no dropout.
//
// Shapes: M rows of queries, N of keys and values, D width, H heads, K = D / H; Q and T tokens of one sequence.

#include "ops.h"
#include "products.h"

namespace bert_tf::attention {
constexpr int kQueries = 64;  // of a sequence that are computed at a time

// Inputs of both operations, in this order.
template <typename T>
struct Inputs {
  explicit Inputs(OpKernelContext* c, int heads)
      : query(read<T>(c->input(0))), key(read<T>(c->input(1))), value(read<T>(c->input(2))),
        of_query(floats(c, 3)), of_key(floats(c, 4)), of_value(floats(c, 5)), hidden(floats(c, 6)),
        query_starts(read<int32_t>(c->input(7))), key_starts(read<int32_t>(c->input(8))), kept(mask_of(c->input(9))),
        batch(c->input(7).NumElements() - 1), width(c->input(0).dim_size(1)), heads(heads), head(width / heads),
        most_queries(kept ? c->input(9).dim_size(2) : 0), most_keys(kept ? c->input(9).dim_size(3) : 0),
        root(1.0f / std::sqrt(static_cast<float>(head))) {}

  const T *query, *key, *value;                    // [M, D], [N, D], [N, D]
  const float *of_query, *of_key, *of_value;       // [D] biases
  const float* hidden;                             // [N] added to the scores of a key
  const int32_t *query_starts, *key_starts;        // [B + 1]
  const uint8_t* kept;                             // [B, H, longest Q, longest T]
  int64_t batch, width, heads, head, most_queries, most_keys;
  float root;
};

// Rows of one head in float32 with their bias, [count, padded(K)], zero where padded.
template <typename T>
void load(const T* rows, const float* bias, int64_t count, int64_t width, int64_t head, float scale, float* to) {
  const int64_t stride = padded(head);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < head; k += 16) __builtin_prefetch(rows + (i + 8) * width + k);  // no stride that a core foresees
    EACH(k, head) to[i * stride + k] = (widened(rows[i * width + k]) + (bias ? bias[k] : 0.0f)) * scale;
    std::fill(to + i * stride + head, to + (i + 1) * stride, 0.0f);
  }
}

// [count, padded(K)] to [K, padded(count)], zero where padded.
void transpose(const float* rows, int64_t count, int64_t head, float* to) {
  const int64_t stride = padded(head), across = padded(count);
  EACH(k, head) {
    for (int64_t i = 0; i < count; ++i) to[k * across + i] = rows[i * stride + k];
    std::fill(to + k * across + count, to + (k + 1) * across, 0.0f);
  }
}

template <typename T>
void unload(const float* rows, int64_t count, int64_t width, int64_t head, float scale, T* to, float* sums) {
  const int64_t stride = padded(head);
  for (int64_t i = 0; i < count; ++i)
    EACH(k, head) {
      const float x = rows[i * stride + k] * scale;
      store(x, to + i * width + k);
      if (sums) sums[k] += x;
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

// What both operations are told.
class Scaled : public OpKernel {
 public:
  explicit Scaled(Construction* c) : OpKernel(c), heads_(attribute<int>(c, "heads")), scale_(attribute<float>(c, "scale")) {}

 protected:
  int heads_;
  float scale_;  // of weights that dropout keeps
};

// One head of one sequence.
template <typename T>
struct Head {
  Head(const Inputs<T>& all, int64_t unit)
      : all(all), sequence(unit / all.heads), number(unit % all.heads), column(number * all.head),
        first_query(all.query_starts[sequence]), first_key(all.key_starts[sequence]),
        queries(all.query_starts[sequence + 1] - first_query), keys(all.key_starts[sequence + 1] - first_key) {}

  const uint8_t* kept(int64_t query) const {
    return all.kept ? all.kept + ((sequence * all.heads + number) * all.most_queries + query) * all.most_keys : nullptr;
  }
  int64_t query_at(int64_t query) const { return (first_query + query) * all.width + column; }
  int64_t key_at() const { return first_key * all.width + column; }

  const Inputs<T>& all;
  int64_t sequence, number, column, first_query, first_key, queries, keys;
};

template <typename T>
class Attention : public Scaled {
 public:
  using Scaled::Scaled;
  void Compute(OpKernelContext* context) override {
    const Inputs<T> all(context, heads_);
    ALLOCATE(context, 0, context->input(0).shape(), output);
    ALLOCATE(context, 1, TensorShape({context->input(0).dim_size(0), heads_}), normalizers);
    auto* result = write<T>(output);
    float* logarithms = write<float>(normalizers);
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    parallel(context, all.batch * heads_, tokens * tokens * (all.head + 8) / 8, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) attend(Head<T>(all, unit), result, logarithms);
    });
  }

 private:
  void attend(const Head<T>& at, T* result, float* logarithms) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys);
    Scratch scratch(2 * at.keys * wide + all.head * across + kQueries * (2 * wide + across));
    float *key = scratch.take(at.keys * wide), *value = scratch.take(at.keys * wide), *keys = scratch.take(all.head * across);
    float *query = scratch.take(kQueries * wide), *context = scratch.take(kQueries * wide), *weights = scratch.take(kQueries * across);
    load(all.key + at.key_at(), all.of_key + at.column, at.keys, all.width, all.head, 1.0f, key);
    load(all.value + at.key_at(), all.of_value + at.column, at.keys, all.width, all.head, 1.0f, value);
    transpose(key, at.keys, all.head, keys);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      product({query, wide, 1}, keys, across, count, all.head, across, weights, across, false);
      for (int64_t i = 0; i < count; ++i) {
        float* row = weights + i * across;
        logarithms[(at.first_query + begin + i) * all.heads + at.number] =
            softmax(row, all.hidden + at.first_key, at.kept(begin + i), at.keys);
      }
      product({weights, across, 1}, value, wide, count, at.keys, wide, context, wide, false);
      unload(context, count, all.width, all.head, 1.0f, result + at.query_at(begin), nullptr);
    }
  }

  // Scores to weights, of which dropout leaves some; returns the logarithm of what they were divided by.
  float softmax(float* row, const float* hidden, const uint8_t* kept, int64_t keys) {
    float most = -INFINITY, sum = 0.0f;
    EACH(j, keys) row[j] += hidden[j];
    EACH(j, keys) most = row[j] > most ? row[j] : most;
    EACH(j, keys) row[j] = exponential(row[j] - most), sum += row[j];
    const float share = (kept ? scale_ : 1.0f) / sum;
    EACH(j, keys) row[j] *= share;
    if (kept) EACH(j, keys) row[j] *= static_cast<float>(kept[j]);
    return most + std::log(sum);
  }
};

template <typename T>
class AttentionGradient : public Scaled {
 public:
  using Scaled::Scaled;
  void Compute(OpKernelContext* context) override {
    const Inputs<T> all(context, heads_);
    const T *upstream = read<T>(context->input(10)), *result = read<T>(context->input(11));
    const float* logarithms = floats(context, 12);
    T* gradients[3];
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, part, context->input(part).shape(), output);
      gradients[part] = write<T>(output);
    }
    std::vector<float> partial(all.batch * 3 * all.width);  // of the biases, by sequence
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    parallel(context, all.batch * heads_, tokens * tokens * (all.head + 8) / 3, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) {
        const Head<T> at(all, unit);
        differentiate(at, upstream, result, logarithms, gradients, partial.data() + at.sequence * 3 * all.width + at.column);
      }
    });
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, 3 + part, TensorShape({all.width}), output);
      add_up(partial.data() + part * all.width, all.batch, 3 * all.width, all.width, write<float>(output));
    }
  }

 private:
  void differentiate(const Head<T>& at, const T* upstream, const T* result, const float* logarithms, T* const* gradients, float* sums) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys), rows = at.keys * wide, block = kQueries * across;
    Scratch scratch(4 * rows + 2 * all.head * across + 4 * kQueries * wide + 3 * block);
    float *key = scratch.take(rows), *value = scratch.take(rows), *of_key = scratch.take(rows), *of_value = scratch.take(rows);
    float *keys = scratch.take(all.head * across), *values = scratch.take(all.head * across);
    float *query = scratch.take(kQueries * wide), *of_query = scratch.take(kQueries * wide);
    float *up = scratch.take(kQueries * wide), *context = scratch.take(kQueries * wide);
    float *weights = scratch.take(block), *dropped = scratch.take(block), *scores = scratch.take(block);
    load(all.key + at.key_at(), all.of_key + at.column, at.keys, all.width, all.head, 1.0f, key);
    load(all.value + at.key_at(), all.of_value + at.column, at.keys, all.width, all.head, 1.0f, value);
    transpose(key, at.keys, all.head, keys);
    transpose(value, at.keys, all.head, values);
    std::fill(of_key, of_key + rows, 0.0f);
    std::fill(of_value, of_value + rows, 0.0f);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      load(upstream + at.query_at(begin), static_cast<const float*>(nullptr), count, all.width, all.head, 1.0f, up);
      load(result + at.query_at(begin), static_cast<const float*>(nullptr), count, all.width, all.head, 1.0f, context);
      product({query, wide, 1}, keys, across, count, all.head, across, weights, across, false);
      product({up, wide, 1}, values, across, count, all.head, across, scores, across, false);
      for (int64_t i = 0; i < count; ++i) {
        float along = 0.0f;
        EACH(k, wide) along += up[i * wide + k] * context[i * wide + k];
        const float logarithm = logarithms[(at.first_query + begin + i) * all.heads + at.number];
        const float* hidden = all.hidden + at.first_key;
        const uint8_t* kept = at.kept(begin + i);
        float *weight = weights + i * across, *left = dropped + i * across, *score = scores + i * across;
        EACH(j, at.keys) weight[j] = exponential(weight[j] + hidden[j] - logarithm);
        if (kept) EACH(j, at.keys) left[j] = weight[j] * (static_cast<float>(kept[j]) * scale_);
        else std::copy(weight, weight + at.keys, left);
        EACH(j, at.keys) score[j] = left[j] * score[j] - weight[j] * along;
      }
      product({scores, across, 1}, key, wide, count, at.keys, wide, of_query, wide, false);
      product({scores, 1, across}, query, wide, at.keys, count, wide, of_key, wide, true);
      product({dropped, 1, across}, up, wide, at.keys, count, wide, of_value, wide, true);
      unload(of_query, count, all.width, all.head, all.root, gradients[0] + at.query_at(begin), sums);
    }
    unload(of_key, at.keys, all.width, all.head, 1.0f, gradients[1] + at.key_at(), sums + all.width);
    unload(of_value, at.keys, all.width, all.head, 1.0f, gradients[2] + at.key_at(), sums + 2 * all.width);
  }
};

#define INPUTS                                                                                                       \
  Input("query: T").Input("key: T").Input("value: T").Input("of_query: float").Input("of_key: float")                 \
      .Input("of_value: float").Input("hidden: float").Input("query_starts: int32").Input("key_starts: int32")        \
      .Input("kept: uint8").Attr("heads: int").Attr("scale: float").Attr("T: {float, bfloat16}")

REGISTER_OP("BertTfAttention").INPUTS.Output("context: T").Output("normalizers: float").SetShapeFn(shaped_as({0, -1}));
REGISTER_OP("BertTfAttentionGrad").INPUTS.Input("upstream: T").Input("context: T").Input("normalizers: float")
    .Output("by_query: T").Output("by_key: T").Output("by_value: T").Output("by_query_bias: float")
    .Output("by_key_bias: float").Output("by_value_bias: float").SetShapeFn(shaped_as({0, 1, 2, 3, 4, 5}));
REGISTER_BERT_TF("BertTfAttention", Attention);
REGISTER_BERT_TF("BertTfAttentionGrad", AttentionGradient);
}  // namespace bert_tf::attention
