// Attention of sequences whose tokens lie one after another as rows, heads side by side (Vaswani et al., 2017).
//
// One sequence and head at a time: products of its own tokens alone, in the cache of a core. Weights are not kept: the gradient
// computes them again from their logarithmic normalizer (Dao et al., 2022). An empty `kept` stands for no dropout.
//
// Within a window, queries and keys are the same tokens, and each sees those at most half a window away: blocks of queries compute
// the keys that one of them sees, so that the cost is in proportion to the length.
//
// Shapes: M rows of queries, N of keys and values, D width, H heads, K = D / H; Q and T tokens of one sequence.

#include "ops.h"
#include "products.h"
#include "squares.h"

namespace bert_tf::attention {
constexpr int kQueries = 64;  // of a sequence that are computed at a time

// Inputs of both operations, in this order.
template <typename T>
struct Inputs {
  Inputs(OpKernelContext* c, int heads, int window)
      : query(read<T>(c->input(0))), key(read<T>(c->input(1))), value(read<T>(c->input(2))),
        of_query(floats(c, 3)), of_key(floats(c, 4)), of_value(floats(c, 5)), hidden(floats(c, 6)),
        query_starts(read<int32_t>(c->input(7))), key_starts(read<int32_t>(c->input(8))), kept(mask_of(c->input(9))),
        batch(c->input(7).NumElements() - 1), width(c->input(0).dim_size(1)), heads(heads), head(width / heads),
        half(window / 2),
        most_queries(kept ? c->input(9).dim_size(2) : 0), most_keys(kept ? c->input(9).dim_size(3) : 0),
        root(1.0f / std::sqrt(static_cast<float>(head))) {}

  const T *query, *key, *value;                    // [M, D], [N, D], [N, D]
  const float *of_query, *of_key, *of_value;       // [D] biases
  const float* hidden;                             // [N] added to the scores of a key
  const int32_t *query_starts, *key_starts;        // [B + 1]
  const uint8_t* kept;                             // [B, H, longest Q, longest T], undefined after each sequence
  int64_t batch, width, heads, head;
  int64_t half;                                    // of the window; 0 for none
  int64_t most_queries, most_keys;
  float root;
};

// InvalidArgument unless the inputs are what `Inputs` says.
inline tensorflow::Status suited(OpKernelContext* c, int heads, int window) {
  for (int rows : {0, 1, 2}) TF_RETURN_IF_ERROR(ranked(c, rows, 2));
  const int64_t queries = c->input(0).dim_size(0), keys = c->input(1).dim_size(0), width = c->input(0).dim_size(1);
  if (width % heads) return tensorflow::errors::InvalidArgument("a width of ", width, " for ", heads, " heads");
  for (int rows : {1, 2}) TF_RETURN_IF_ERROR(rows_of(c, rows, width));
  TF_RETURN_IF_ERROR(counted(c, {{2, keys * width}, {3, width}, {4, width}, {5, width}, {6, keys}}));
  const Tensor& kept = c->input(9);
  const int64_t batch = c->input(7).NumElements() - 1;
  int64_t longest[] = {queries, keys};
  if (batch < 0) return tensorflow::errors::InvalidArgument("input 7 has no elements");
  if (kept.NumElements()) {
    TF_RETURN_IF_ERROR(ranked(c, 9, 4));
    if (kept.dim_size(0) != batch || kept.dim_size(1) != heads)
      return tensorflow::errors::InvalidArgument("a mask of ", kept.shape().DebugString(), " for ", batch, " sequences and ", heads, " heads");
    longest[0] = kept.dim_size(2), longest[1] = kept.dim_size(3);
  }
  TF_RETURN_IF_ERROR(starts_of_all(c, 7, batch, queries, longest[0]));
  TF_RETURN_IF_ERROR(starts_of_all(c, 8, batch, keys, longest[1]));
  if (window && !std::equal(read<int32_t>(c->input(7)), read<int32_t>(c->input(7)) + batch + 1, read<int32_t>(c->input(8))))
    return tensorflow::errors::InvalidArgument("a window needs queries and keys of the same tokens");
  return tensorflow::OkStatus();
}

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

// What both operations are told.
class Scaled : public OpKernel {
 public:
  explicit Scaled(Construction* c)
      : OpKernel(c), heads_(attribute<int>(c, "heads")), window_(attribute<int>(c, "window")), scale_(attribute<float>(c, "scale")) {}

 protected:
  int heads_, window_;
  float scale_;  // of weights that dropout keeps
  // Keys that a query computes, about.
  int64_t near(int64_t tokens) const { return window_ ? std::min<int64_t>(tokens, window_ + kQueries) : tokens; }
};

// Keys that a block of queries sees.
struct Seen {
  int64_t first, count, across;  // across: of the scores of a query, with padding
};

// One head of one sequence.
template <typename T>
struct Head {
  Head(const Inputs<T>& all, int64_t unit)
      : all(all), sequence(unit / all.heads), number(unit % all.heads), column(number * all.head),
        first_query(all.query_starts[sequence]), first_key(all.key_starts[sequence]),
        queries(all.query_starts[sequence + 1] - first_query), keys(all.key_starts[sequence + 1] - first_key) {}

  // `hidden` of the sequence, up to `across` keys: -inf after its end gives padding next to no weight (e^-87).
  float* hidden(float* to, int64_t across) const {
    std::copy(all.hidden + first_key, all.hidden + first_key + keys, to);
    std::fill(to + keys, to + across, -INFINITY);
    return to;
  }
  // The query's row of the mask from the first key that is seen, readable up to `across`; a copy if the mask ends before.
  const uint8_t* kept(int64_t query, const Seen& seen, uint8_t* copy) const {
    const int64_t from = ((sequence * all.heads + number) * all.most_queries + query) * all.most_keys + seen.first;
    if (from + seen.across <= all.batch * all.heads * all.most_queries * all.most_keys) return all.kept + from;
    std::copy(all.kept + from, all.kept + from + seen.count, copy);
    return copy;
  }
  Seen seen(int64_t begin, int64_t count) const {
    if (!all.half) return {0, keys, padded(keys)};
    const int64_t first = std::max<int64_t>(0, begin - all.half) / kLanes * kLanes, last = std::min(keys, begin + count + all.half);
    return {first, last - first, padded(last - first)};
  }
  // The largest `across` of a block.
  int64_t widest() const {
    return all.half ? std::min<int64_t>(padded(keys), padded(kQueries + 2 * all.half + kLanes)) : padded(keys);
  }
  // Hides what the query is too far from.
  void hide(int64_t query, const Seen& seen, float* scores) const {
    if (!all.half) return;
    const int64_t before = std::max<int64_t>(0, query - all.half - seen.first), behind = std::min(seen.across, query + all.half + 1 - seen.first);
    std::fill(scores, scores + before, -INFINITY);
    std::fill(scores + behind, scores + seen.across, -INFINITY);
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
    OP_REQUIRES_OK(context, suited(context, heads_, window_));
    const Inputs<T> all(context, heads_, window_);
    ALLOCATE(context, 0, context->input(0).shape(), output);
    ALLOCATE(context, 1, TensorShape({context->input(0).dim_size(0), heads_}), normalizers);
    auto* result = write<T>(output);
    float* logarithms = write<float>(normalizers);
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    parallel(context, all.batch * heads_, tokens * near(tokens) * (all.head + 8) / 8, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) attend(Head<T>(all, unit), result, logarithms);
    });
  }

 private:
  void attend(const Head<T>& at, T* result, float* logarithms) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys), widest = at.widest();
    Scratch scratch(3 * across * wide + kQueries * (2 * wide + widest) + across + widest);
    float *key = scratch.take(across * wide), *value = scratch.take(across * wide), *keys = scratch.take(across * wide);
    float *query = scratch.take(kQueries * wide), *context = scratch.take(kQueries * wide), *weights = scratch.take(kQueries * widest);
    const float* hidden = at.hidden(scratch.take(across), across);
    uint8_t* copy = reinterpret_cast<uint8_t*>(scratch.take(widest));
    load(all.key + at.key_at(), all.of_key + at.column, at.keys, all.width, all.head, 1.0f, key);
    load(all.value + at.key_at(), all.of_value + at.column, at.keys, all.width, all.head, 1.0f, value);
    transpose(key, across, wide, keys);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      const Seen seen = at.seen(begin, count);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      product({query, wide, 1}, keys + seen.first, across, count, all.head, seen.across, weights, seen.across, false);
      float shares[kQueries];
      for (int64_t i = 0; i < count; ++i) {
        const uint8_t* kept = all.kept ? at.kept(begin + i, seen, copy) : nullptr;
        at.hide(begin + i, seen, weights + i * seen.across);
        const auto [most, sum] = exponentials(weights + i * seen.across, hidden + seen.first, kept, seen.across);
        logarithms[(at.first_query + begin + i) * all.heads + at.number] = most + std::log(sum);
        shares[i] = (kept ? scale_ : 1.0f) / sum;
      }
      product({weights, seen.across, 1}, value + seen.first * wide, wide, count, seen.count, wide, context, wide, false);
      for (int64_t i = 0; i < count; ++i) EACH(k, wide) context[i * wide + k] *= shares[i];
      unload(context, count, all.width, all.head, 1.0f, result + at.query_at(begin));
    }
  }

  // Scores to weights, not divided yet, of which dropout leaves some; returns the largest score and the sum before dropout.
  static std::pair<float, float> exponentials(float* row, const float* hidden, const uint8_t* kept, int64_t across) {
    across = across / kLanes * kLanes;  // the compiler sees whole vectors
    Lanes most = Lanes{} - INFINITY;
    for (int64_t j = 0; j < across; j += kLanes) {
      const Lanes score = lanes(row + j) += lanes(hidden + j);
      most = score > most ? score : most;
    }
    const float top = largest(most);
    float sum = 0.0f;
    if (kept) EACH(j, across) {
        const float weight = exponential(row[j] - top);
        sum += weight, row[j] = weight * static_cast<float>(kept[j]);
      }
    else EACH(j, across) row[j] = exponential(row[j] - top), sum += row[j];
    return {top, sum};
  }
};

template <typename T>
class AttentionGradient : public Scaled {
 public:
  using Scaled::Scaled;
  void Compute(OpKernelContext* context) override {
    OP_REQUIRES_OK(context, suited(context, heads_, window_));
    const int64_t rows = context->input(0).dim_size(0);
    OP_REQUIRES_OK(context, counted(context, {{10, context->input(0).NumElements()}, {11, rows * heads_}}));
    const Inputs<T> all(context, heads_, window_);
    const T* upstream = read<T>(context->input(10));
    const float* logarithms = floats(context, 11);
    T* gradients[3];
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, part, context->input(part).shape(), output);
      gradients[part] = write<T>(output);
    }
    std::vector<float> partial(all.batch * 3 * all.width);  // of the biases, by sequence
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    parallel(context, all.batch * heads_, tokens * near(tokens) * (all.head + 8) / 3, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) {
        const Head<T> at(all, unit);
        differentiate(at, upstream, logarithms, gradients, partial.data() + at.sequence * 3 * all.width + at.column);
      }
    });
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, 3 + part, TensorShape({all.width}), output);
      add_up(partial.data() + part * all.width, all.batch, 3 * all.width, all.width, write<float>(output));
    }
  }

 private:
  void differentiate(const Head<T>& at, const T* upstream, const float* logarithms, T* const* gradients, float* sums) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys), widest = at.widest(), rows = across * wide, block = kQueries * widest;
    Scratch scratch(6 * rows + 3 * kQueries * wide + 3 * block + across + widest);
    float *key = scratch.take(rows), *value = scratch.take(rows), *of_key = scratch.take(rows), *of_value = scratch.take(rows);
    float *keys = scratch.take(rows), *values = scratch.take(rows);
    float *query = scratch.take(kQueries * wide), *of_query = scratch.take(kQueries * wide), *up = scratch.take(kQueries * wide);
    float *weights = scratch.take(block), *dropped = scratch.take(block), *scores = scratch.take(block);
    const float* hidden = at.hidden(scratch.take(across), across);
    uint8_t* copy = reinterpret_cast<uint8_t*>(scratch.take(widest));
    load(all.key + at.key_at(), all.of_key + at.column, at.keys, all.width, all.head, 1.0f, key);
    load(all.value + at.key_at(), all.of_value + at.column, at.keys, all.width, all.head, 1.0f, value);
    transpose(key, across, wide, keys);
    transpose(value, across, wide, values);
    std::fill(of_key, of_key + rows, 0.0f);
    std::fill(of_value, of_value + rows, 0.0f);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      const Seen seen = at.seen(begin, count);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      load(upstream + at.query_at(begin), static_cast<const float*>(nullptr), count, all.width, all.head, 1.0f, up);
      product({query, wide, 1}, keys + seen.first, across, count, all.head, seen.across, weights, seen.across, false);
      product({up, wide, 1}, values + seen.first, across, count, all.head, seen.across, scores, seen.across, false);
      for (int64_t i = 0; i < count; ++i) {
        const float logarithm = logarithms[(at.first_query + begin + i) * all.heads + at.number];
        const uint8_t* kept = all.kept ? at.kept(begin + i, seen, copy) : nullptr;
        const int64_t row = i * seen.across;
        at.hide(begin + i, seen, weights + row);
        by_scores(weights + row, dropped + row, scores + row, hidden + seen.first, logarithm, kept, seen.across);
      }
      const int64_t from = seen.first * wide;
      product({scores, seen.across, 1}, key + from, wide, count, seen.count, wide, of_query, wide, false);
      product({scores, 1, seen.across}, query, wide, seen.count, count, wide, of_key + from, wide, true);
      product({dropped, 1, seen.across}, up, wide, seen.count, count, wide, of_value + from, wide, true);
      unload(of_query, count, all.width, all.head, all.root, gradients[0] + at.query_at(begin));
      add_rows(of_query, count, all.head, all.root, sums);
    }
    unload(of_key, at.keys, all.width, all.head, 1.0f, gradients[1] + at.key_at());
    unload(of_value, at.keys, all.width, all.head, 1.0f, gradients[2] + at.key_at());
    add_rows(of_key, at.keys, all.head, 1.0f, sums + all.width);
    add_rows(of_value, at.keys, all.head, 1.0f, sums + 2 * all.width);
  }

  // `scores`: on entry the gradients of the weights after dropout, on return those of the scores.
  void by_scores(float* weights, float* dropped, float* scores, const float* hidden, float logarithm, const uint8_t* kept,
                 int64_t across) const {
    across = across / kLanes * kLanes;  // the compiler sees whole vectors
    float along = 0.0f;
    EACH(j, across) weights[j] = exponential(weights[j] + hidden[j] - logarithm);
    if (kept) EACH(j, across) dropped[j] = weights[j] * (static_cast<float>(kept[j]) * scale_);
    else std::copy(weights, weights + across, dropped);
    EACH(j, across) scores[j] *= dropped[j], along += scores[j];
    EACH(j, across) scores[j] -= weights[j] * along;
  }
};

#define INPUTS                                                                                                       \
  Input("query: T").Input("key: T").Input("value: T").Input("of_query: float").Input("of_key: float")                 \
      .Input("of_value: float").Input("hidden: float").Input("query_starts: int32").Input("key_starts: int32")        \
      .Input("kept: uint8").Attr("heads: int >= 1").Attr("window: int >= 0 = 0").Attr("scale: float").Attr("T: {float, bfloat16}")

REGISTER_OP("BertTfAttention").INPUTS.Output("context: T").Output("normalizers: float").SetShapeFn(shaped_as({0, -1}));
REGISTER_OP("BertTfAttentionGrad").INPUTS.Input("upstream: T").Input("normalizers: float")
    .Output("by_query: T").Output("by_key: T").Output("by_value: T").Output("by_query_bias: float")
    .Output("by_key_bias: float").Output("by_value_bias: float").SetShapeFn(shaped_as({0, 1, 2, 3, 4, 5}));
REGISTER_BERT_TF("BertTfAttention", Attention);
REGISTER_BERT_TF("BertTfAttentionGrad", AttentionGradient);
}  // namespace bert_tf::attention
