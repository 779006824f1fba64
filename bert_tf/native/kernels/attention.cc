// Attention of sequences whose tokens lie one after another as rows, heads side by side (Vaswani et al., 2017).
//
// One sequence and head at a time: products of its own tokens alone, in the cache of a core. Weights are not kept: the gradient
// computes them again from their logarithmic normalizer (Dao et al., 2022). An empty `kept` stands for no dropout.
//
// Within a window, queries and keys are the same tokens, and each sees those at most half a window away: blocks of queries compute
// the keys that one of them sees, so that the cost is in proportion to the length.
//
// Shapes: M rows of queries, N of keys and values, D width, H heads, K = D / H; Q and T tokens of one sequence.

#include <optional>

#include "relative.h"

namespace bert_tf::attention {
constexpr int kGroups = 4;  // of sequences, whose gradients of distances are summed apart; not one for each thread: bits would differ

constexpr int kInputs = 10;  // then come two tensors of vectors, or none, and one of numbers, or none

// Tokens of the longest sequence whose distances are given; 0 if there are none.
inline int64_t longest_of_distances(OpKernelContext* c, int vectors, int numbers) {
  if (vectors) return (c->input(kInputs).dim_size(0) + 1) / 2;
  return numbers ? (c->input(kInputs).dim_size(1) + 1) / 2 : 0;
}

// Inputs of both operations, in this order.
template <typename T>
struct Inputs {
  Inputs(OpKernelContext* c, int heads, int window, int vectors, int numbers)
      : query(read<T>(c->input(0))), key(read<T>(c->input(1))), value(read<T>(c->input(2))),
        of_query(floats(c, 3)), of_key(floats(c, 4)), of_value(floats(c, 5)), hidden(floats(c, 6)),
        query_starts(read<int32_t>(c->input(7))), key_starts(read<int32_t>(c->input(8))), kept(mask_of(c->input(9))),
        batch(c->input(7).NumElements() - 1), width(c->input(0).dim_size(1)), heads(heads), head(width / heads),
        half(window / 2),
        most_queries(kept ? c->input(9).dim_size(2) : 0), most_keys(kept ? c->input(9).dim_size(3) : 0),
        distances{vectors ? read<T>(c->input(kInputs)) : nullptr, vectors ? read<T>(c->input(kInputs + 1)) : nullptr,
                  numbers ? floats(c, kInputs + vectors) : nullptr, longest_of_distances(c, vectors, numbers)},
        root(1.0f / std::sqrt(static_cast<float>(head * (vectors ? 3 : 1)))) {}

  const T *query, *key, *value;                    // [M, D], [N, D], [N, D]
  const float *of_query, *of_key, *of_value;       // [D] biases
  const float* hidden;                             // [N] added to the scores of a key
  const int32_t *query_starts, *key_starts;        // [B + 1]
  const uint8_t* kept;                             // [B, H, longest Q, longest T], undefined after each sequence
  int64_t batch, width, heads, head;
  int64_t half;                                    // of the window; 0 for none
  int64_t most_queries, most_keys;
  Distances<T> distances;
  float root;                                      // of the head's width, times the products that a score is the sum of
};

// InvalidArgument unless those of distances have one row, or column, for each.
inline tensorflow::Status distances_of(OpKernelContext* c, int heads, int64_t width, int vectors, int numbers) {
  if ((vectors != 0 && vectors != 2) || numbers > 1)
    return tensorflow::errors::InvalidArgument(vectors, " tensors of vectors and ", numbers, " of numbers");
  for (int i = 0; i < vectors + numbers; ++i) TF_RETURN_IF_ERROR(ranked(c, kInputs + i, 2));
  const int64_t count = 2 * longest_of_distances(c, vectors, numbers) - 1;
  for (int i = 0; i < vectors; ++i) TF_RETURN_IF_ERROR(counted(c, {{kInputs + i, count * width}}));
  for (int i = 0; i < vectors; ++i) TF_RETURN_IF_ERROR(rows_of(c, kInputs + i, width));
  if (numbers) TF_RETURN_IF_ERROR(counted(c, {{kInputs + vectors, heads * count}}));
  return numbers ? rows_of(c, kInputs + vectors, count) : tensorflow::OkStatus();
}

// InvalidArgument unless the inputs are what `Inputs` says.
inline tensorflow::Status suited(OpKernelContext* c, int heads, int window, int vectors, int numbers) {
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
  TF_RETURN_IF_ERROR(distances_of(c, heads, width, vectors, numbers));
  if (vectors || numbers) {
    if (window) return tensorflow::errors::InvalidArgument("distances add nothing within a window");
    for (int64_t& most : longest) most = std::min(most, longest_of_distances(c, vectors, numbers));
  }
  TF_RETURN_IF_ERROR(starts_of_all(c, 7, batch, queries, longest[0]));
  TF_RETURN_IF_ERROR(starts_of_all(c, 8, batch, keys, longest[1]));
  if (window && !std::equal(read<int32_t>(c->input(7)), read<int32_t>(c->input(7)) + batch + 1, read<int32_t>(c->input(8))))
    return tensorflow::errors::InvalidArgument("a window needs queries and keys of the same tokens");
  return tensorflow::OkStatus();
}

// What both operations are told.
class Scaled : public OpKernel {
 public:
  explicit Scaled(Construction* c)
      : OpKernel(c), heads_(attribute<int>(c, "heads")), window_(attribute<int>(c, "window")), vectors_(attribute<int>(c, "V")),
        numbers_(attribute<int>(c, "U")), scale_(attribute<float>(c, "scale")) {}

 protected:
  int heads_, window_;
  int vectors_, numbers_;  // tensors
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
  Head(const Inputs<T>& all, int64_t sequence, int64_t number)
      : all(all), sequence(sequence), number(number), column(number * all.head),
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
  // Floats of `relative`.
  int64_t size_of_relative() const { return all.distances.given() ? Relative::size(queries, keys, padded(all.head)) : 0; }
  std::optional<Relative> relative(Scratch& scratch) const {
    if (!all.distances.given()) return std::nullopt;
    return Relative(all.distances, all.of_query, all.of_key, number, queries, keys, all.width, all.head, all.root, scratch);
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
    OP_REQUIRES_OK(context, suited(context, heads_, window_, vectors_, numbers_));
    const Inputs<T> all(context, heads_, window_, vectors_, numbers_);
    ALLOCATE(context, 0, context->input(0).shape(), output);
    ALLOCATE(context, 1, TensorShape({context->input(0).dim_size(0), heads_}), normalizers);
    auto* result = write<T>(output);
    float* logarithms = write<float>(normalizers);
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    parallel(context, all.batch * heads_, tokens * near(tokens) * (all.head + 8) / 8, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) attend(Head<T>(all, unit / heads_, unit % heads_), result, logarithms);
    });
  }

 private:
  void attend(const Head<T>& at, T* result, float* logarithms) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys), widest = at.widest();
    Scratch scratch(3 * across * wide + kQueries * (2 * wide + widest) + across + widest + at.size_of_relative());
    float *key = scratch.take(across * wide), *value = scratch.take(across * wide), *keys = scratch.take(across * wide);
    float *query = scratch.take(kQueries * wide), *context = scratch.take(kQueries * wide), *weights = scratch.take(kQueries * widest);
    const float* hidden = at.hidden(scratch.take(across), across);
    uint8_t* copy = reinterpret_cast<uint8_t*>(scratch.take(widest));
    load(all.key + at.key_at(), all.of_key + at.column, at.keys, all.width, all.head, 1.0f, key);
    load(all.value + at.key_at(), all.of_value + at.column, at.keys, all.width, all.head, 1.0f, value);
    transpose(key, across, wide, keys);
    const std::optional<Relative> relative = at.relative(scratch);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      const Seen seen = at.seen(begin, count);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      product({query, wide, 1}, keys + seen.first, across, count, all.head, seen.across, weights, seen.across, false);
      if (relative) relative->add(query, key, begin, count, seen.across, weights);
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
    OP_REQUIRES_OK(context, suited(context, heads_, window_, vectors_, numbers_));
    const int64_t rows = context->input(0).dim_size(0);
    const int behind = kInputs + vectors_ + numbers_;
    OP_REQUIRES_OK(context, counted(context, {{behind, context->input(0).NumElements()}, {behind + 1, rows * heads_}}));
    const Inputs<T> all(context, heads_, window_, vectors_, numbers_);
    const T* upstream = read<T>(context->input(behind));
    const float* logarithms = floats(context, behind + 1);
    T* gradients[3];
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, part, context->input(part).shape(), output);
      gradients[part] = write<T>(output);
    }
    std::vector<float> partial(all.batch * 3 * all.width);  // of the biases, by sequence
    const int64_t tokens = all.batch ? context->input(1).dim_size(0) / all.batch : 0;
    // Sequences of a group follow one another, since they add to the same gradients of distances.
    const int64_t groups = all.distances.given() ? std::min<int64_t>(all.batch, kGroups) : all.batch;
    const int64_t size = all.distances.given() ? DistanceSums::size(all.distances.count(), padded(all.head)) : 0;
    Tensor by_distance;  // of each group and head
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_FLOAT, TensorShape({groups * heads_, size}), &by_distance));
    float* sums = write<float>(&by_distance);
    const int64_t cost = tokens * near(tokens) * (all.head + 8) / 3;
    parallel(context, groups * heads_, groups ? cost * all.batch / groups : 0, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) {
        const int64_t group = unit / heads_;
        std::fill(sums + unit * size, sums + (unit + 1) * size, 0.0f);
        for (int64_t sequence = group * all.batch / groups; sequence < (group + 1) * all.batch / groups; ++sequence) {
          const Head<T> at(all, sequence, unit % heads_);
          differentiate(at, upstream, logarithms, gradients, partial.data() + sequence * 3 * all.width + at.column, sums + unit * size);
        }
      }
    });
    float* of_biases[3];
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, 3 + part, TensorShape({all.width}), output);
      of_biases[part] = write<float>(output);
      add_up(partial.data() + part * all.width, all.batch, 3 * all.width, all.width, of_biases[part]);
    }
    Tensor* of_distances[3] = {};
    for (int i = 0; i < vectors_ + numbers_; ++i)
      OP_REQUIRES_OK(context, context->allocate_output(6 + i, context->input(kInputs + i).shape(), &of_distances[vectors_ ? i : 2]));
    if (!all.distances.given()) return;
    parallel(context, heads_, groups * size, [&](int64_t first, int64_t last) {
      for (int64_t head = first; head < last; ++head) {
        for (int64_t group = 1; group < groups; ++group)
          EACH(i, size) sums[head * size + i] += sums[(group * heads_ + head) * size + i];
        collect(all, head, groups ? sums + head * size : nullptr, of_biases, of_distances);
      }
    });
  }

 private:
  // Writes the gradients of the distances of a head, and adds to those of the biases that their vectors have.
  static void collect(const Inputs<T>& all, int64_t head, float* sums, float* const* of_biases, Tensor* const* to) {
    const int64_t count = all.distances.count(), column = head * all.head;
    const std::vector<float> none(sums ? 0 : DistanceSums::size(count, padded(all.head)));
    const DistanceSums by(sums ? sums : const_cast<float*>(none.data()), count, padded(all.head));
    if (all.distances.as_queries) {
      unload(by.as_queries, count, all.width, all.head, all.root, write<T>(to[0]) + column);
      unload(by.as_keys, count, -all.width, all.head, 1.0f, write<T>(to[1]) + (count - 1) * all.width + column);
      add_rows(by.as_queries, count, all.head, all.root, of_biases[0] + column);
      add_rows(by.as_keys, count, all.head, 1.0f, of_biases[1] + column);
    }
    if (all.distances.numbers) std::reverse_copy(by.numbers, by.numbers + count, write<float>(to[2]) + head * count);
  }

  void differentiate(const Head<T>& at, const T* upstream, const float* logarithms, T* const* gradients, float* sums, float* by_distance) {
    const Inputs<T>& all = at.all;
    const int64_t wide = padded(all.head), across = padded(at.keys), widest = at.widest(), rows = across * wide, block = kQueries * widest;
    Scratch scratch(6 * rows + 3 * kQueries * wide + 3 * block + across + widest + at.size_of_relative());
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
    const std::optional<Relative> relative = at.relative(scratch);
    const DistanceSums of_distances(by_distance, all.distances.count(), wide);
    std::fill(of_key, of_key + rows, 0.0f);
    std::fill(of_value, of_value + rows, 0.0f);
    for (int64_t begin = 0; begin < at.queries; begin += kQueries) {
      const int64_t count = std::min<int64_t>(kQueries, at.queries - begin);
      const Seen seen = at.seen(begin, count);
      load(all.query + at.query_at(begin), all.of_query + at.column, count, all.width, all.head, all.root, query);
      load(upstream + at.query_at(begin), static_cast<const float*>(nullptr), count, all.width, all.head, 1.0f, up);
      product({query, wide, 1}, keys + seen.first, across, count, all.head, seen.across, weights, seen.across, false);
      if (relative) relative->add(query, key, begin, count, seen.across, weights);
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
      if (relative) relative->differentiate(query, key, begin, count, seen.across, scores, of_query, of_key, of_distances);
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
      .Input("kept: uint8").Input("vectors: V * T").Input("numbers: U * float").Attr("V: int >= 0 = 0")               \
      .Attr("U: int >= 0 = 0").Attr("heads: int >= 1").Attr("window: int >= 0 = 0").Attr("scale: float")              \
      .Attr("T: {float, bfloat16}")

REGISTER_OP("BertTfAttention").INPUTS.Output("context: T").Output("normalizers: float").SetShapeFn(shaped_as({0, -1}));
REGISTER_OP("BertTfAttentionGrad").INPUTS.Input("upstream: T").Input("normalizers: float")
    .Output("by_query: T").Output("by_key: T").Output("by_value: T").Output("by_query_bias: float")
    .Output("by_key_bias: float").Output("by_value_bias: float").Output("by_vectors: V * T").Output("by_numbers: U * float")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(i < 6 ? i : i - 6 + kInputs));
      return tensorflow::OkStatus();
    });
REGISTER_BERT_TF("BertTfAttention", Attention);
REGISTER_BERT_TF("BertTfAttentionGrad", AttentionGradient);
}  // namespace bert_tf::attention
