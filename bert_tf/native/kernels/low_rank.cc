// Rows plus a product of low rank, base + scaling (x down) up, and its gradients by x and by both matrices.
//
// N rows, D width of x, E width of the base, R rank. Tables and narrow rows are padded with zeros to whole vectors.

#include "ops.h"
#include "products.h"

namespace bert_tf::low_rank {
constexpr int kColumns = 256, kHeight = 32;  // of a few rows, which are computed while they are in the cache
constexpr int kNarrow = 8;  // lanes of narrow rows: most ranks are less than kLanes
constexpr int kSums = 8;    // parts of sums over rows

int64_t tiles(int64_t rows) { return (rows + kRows - 1) / kRows; }

// [height, width] to [height, padded(width, lanes)].
std::vector<float> padded_table(const float* from, int64_t height, int64_t width, int lanes, float scale = 1.0f) {
  const int64_t stride = padded(width, lanes);
  std::vector<float> to(height * stride);
  for (int64_t i = 0; i < height; ++i) EACH(j, width) to[i * stride + j] = from[i * width + j] * scale;
  return to;
}

// [height, width] to [width, padded(height, lanes)].
std::vector<float> padded_transposed(const float* from, int64_t height, int64_t width, int lanes, float scale = 1.0f) {
  const int64_t stride = padded(height, lanes);
  std::vector<float> to(width * stride);
  for (int64_t i = 0; i < height; ++i) EACH(j, width) to[j * stride + i] = from[i * width + j] * scale;
  return to;
}

// Some columns of a few rows in float32: in place, or copied to `part` if they are not float32 or end within a vector.
template <typename T>
Matrix as_floats(const T* rows, int64_t count, int64_t width, int64_t columns, float* part) {
  if constexpr (std::is_same_v<T, float>)
    if (columns % kLanes == 0) return {rows, width, 1};
  for (int64_t i = 0; i < count; ++i) EACH(k, columns) part[i * kColumns + k] = widened(rows[i * width + k]);
  return {part, kColumns, 1};
}

// Rows [count, width] times a table [width, rank] to [count, rank]: at most kRows rows, a rank of whole vectors.
template <typename T>
void to_narrow(const T* rows, int64_t count, int64_t width, const float* table, int rank, float* narrow) {
  float part[kRows * kColumns];
  for (int64_t j = 0; j < width; j += kColumns) {
    const int64_t columns = std::min<int64_t>(kColumns, width - j);
    const Matrix floats = as_floats(rows + j, count, width, columns, part);
    product<kNarrow>(floats, table + j * rank, rank, count, columns, rank, narrow, rank, j > 0);
  }
}

// rows [count, width] += narrow rows [count, rank] times a table [rank, padded(width)]: at most kRows rows.
template <typename T>
void add_wide(Matrix narrow, int64_t count, int rank, const float* table, int64_t width, T* rows) {
  float part[kRows * kColumns];
  for (int64_t j = 0; j < width; j += kColumns) {
    const int64_t columns = std::min<int64_t>(kColumns, width - j);
    const Matrix floats = as_floats(rows + j, count, width, columns, part);
    product(narrow, table + j, padded(width), count, rank, padded(columns), const_cast<float*>(floats.data), floats.row, true);
    if (floats.data == part)
      for (int64_t i = 0; i < count; ++i) EACH(k, columns) store(part[i * kColumns + k], rows + i * width + j + k);
  }
}

// sums [rank, padded(width)] += narrow rows [count, rank] transposed, times rows [count, width]: at most kHeight rows.
template <typename T>
void add_outer(const T* rows, int64_t count, int64_t width, const float* narrow, int64_t stride, int rank, float* sums) {
  float part[kHeight * kColumns];
  for (int64_t j = 0; j < width; j += kColumns) {
    const int64_t columns = std::min<int64_t>(kColumns, width - j);
    const Matrix floats = as_floats(rows + j, count, width, columns, part);
    product({narrow, 1, stride}, floats.data, floats.row, rank, count, padded(columns), sums + j, padded(width), true);
  }
}

// Sizes that the inputs agree on.
struct Sizes {
  int64_t rows, inner, width, rank;

  // `wide` [N, E], `x` [N, D], `down` [D, R] and `up` [R, E] are inputs, by number.
  static tensorflow::Status read(OpKernelContext* context, int wide, int x, int down, int up, Sizes* sizes) {
    TF_RETURN_IF_ERROR(ranked(context, down, 2));
    TF_RETURN_IF_ERROR(ranked(context, up, 2));
    const int64_t inner = context->input(down).dim_size(0), rank = context->input(down).dim_size(1);
    const int64_t width = context->input(up).dim_size(1), rows = width ? context->input(wide).NumElements() / width : 0;
    TF_RETURN_IF_ERROR(rows_of(context, x, inner));
    TF_RETURN_IF_ERROR(rows_of(context, wide, width));
    *sizes = {rows, inner, width, rank};
    return counted(context, {{x, rows * inner}, {up, rank * width}});
  }
};

// The first output, which holds what the first input does: in the memory of the input if nothing else reads it.
tensorflow::Status begun(OpKernelContext* context, Tensor** output) {
  const Tensor& input = context->input(0);
  TF_RETURN_IF_ERROR(context->forward_input_or_allocate_output({0}, 0, input.shape(), output));
  if (input.data() != (*output)->data()) std::memcpy((*output)->data(), input.data(), input.TotalBytes());
  return tensorflow::OkStatus();
}

template <typename T>
class LowRank : public OpKernel {
 public:
  explicit LowRank(Construction* c) : OpKernel(c), scaling_(attribute<float>(c, "scaling")) {}

  void Compute(OpKernelContext* context) override {
    Sizes sizes;
    OP_REQUIRES_OK(context, Sizes::read(context, 0, 1, 2, 3, &sizes));
    const int64_t inner = sizes.inner, width = sizes.width;
    const int rank = padded(sizes.rank, kNarrow);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, begun(context, &output));
    ALLOCATE(context, 1, TensorShape({sizes.rows, rank}), kept);
    const T* x = read<T>(context->input(1));
    T* y = write<T>(output);
    float* narrow = write<float>(kept);
    const std::vector<float> down = padded_table(floats(context, 2), inner, sizes.rank, kNarrow);
    const std::vector<float> up = padded_table(floats(context, 3), sizes.rank, width, kLanes, scaling_);
    parallel(context, tiles(sizes.rows), kRows * sizes.rank * (inner + width) / 8, [&](int64_t first, int64_t last) {
      for (int64_t row = first * kRows; row < std::min(sizes.rows, last * kRows); row += kRows) {
        const int64_t count = std::min<int64_t>(kRows, sizes.rows - row);
        to_narrow(x + row * inner, count, inner, down.data(), rank, narrow + row * rank);
        add_wide({narrow + row * rank, rank, 1}, count, sizes.rank, up.data(), width, y + row * width);
      }
    });
  }

 private:
  float scaling_;
};

template <typename T>
class LowRankGradient : public OpKernel {
 public:
  explicit LowRankGradient(Construction* c) : OpKernel(c), scaling_(attribute<float>(c, "scaling")) {}

  void Compute(OpKernelContext* context) override {
    Sizes sizes;
    OP_REQUIRES_OK(context, Sizes::read(context, 1, 2, 4, 5, &sizes));
    const int64_t rows = sizes.rows, inner = sizes.inner, width = sizes.width;
    const int rank = padded(sizes.rank, kNarrow);
    OP_REQUIRES_OK(context, counted(context, {{0, rows * inner}, {3, rows * rank}}));
    Tensor* of_x = nullptr;
    OP_REQUIRES_OK(context, begun(context, &of_x));
    ALLOCATE(context, 1, context->input(4).shape(), of_down);
    ALLOCATE(context, 2, context->input(5).shape(), of_up);
    const T *upstream = read<T>(context->input(1)), *x = read<T>(context->input(2));
    T* wide = write<T>(of_x);
    const std::vector<float> down = padded_transposed(floats(context, 4), inner, sizes.rank, kLanes);
    const std::vector<float> up = padded_transposed(floats(context, 5), sizes.rank, width, kNarrow, scaling_);
    const Blocks blocks(rows, kSums);
    const int64_t of_inner = sizes.rank * padded(inner), size = of_inner + sizes.rank * padded(width);
    std::vector<float> partial(blocks.count * size);  // gradients of `down`, transposed, and of `up`
    parallel(context, blocks.count, blocks.size * sizes.rank * (inner + width) / 4, [&](int64_t first, int64_t last) {
      std::vector<float> of_narrow(kHeight * rank);
      for (int64_t block = first; block < last; ++block) {
        float* sums = partial.data() + block * size;
        for (int64_t row = blocks.first(block); row < blocks.last(block); row += kHeight) {
          const int64_t end = std::min(blocks.last(block), row + kHeight);
          for (int64_t tile = row; tile < end; tile += kRows) {
            const int64_t count = std::min<int64_t>(kRows, end - tile);
            float* narrow = of_narrow.data() + (tile - row) * rank;
            to_narrow(upstream + tile * width, count, width, up.data(), rank, narrow);
            add_wide({narrow, rank, 1}, count, sizes.rank, down.data(), inner, wide + tile * inner);
          }
          add_outer(x + row * inner, end - row, inner, of_narrow.data(), rank, sizes.rank, sums);
          add_outer(upstream + row * width, end - row, width, floats(context, 3) + row * rank, rank, sizes.rank, sums + of_inner);
        }
      }
    });
    std::vector<float> sums(size);
    add_up(partial.data(), blocks.count, size, size, sums.data());
    float *to_down = write<float>(of_down), *to_up = write<float>(of_up);
    for (int64_t r = 0; r < sizes.rank; ++r) {
      EACH(i, inner) to_down[i * sizes.rank + r] = sums[r * padded(inner) + i];
      EACH(j, width) to_up[r * width + j] = sums[of_inner + r * padded(width) + j] * scaling_;
    }
  }

 private:
  float scaling_;
};

REGISTER_OP("BertTfLowRank").Input("base: T").Input("x: T").Input("down: float").Input("up: float")
    .Attr("scaling: float").Attr("T: {float, bfloat16}").Output("y: T").Output("narrow: float").SetShapeFn(shaped_as({0, -1}));
REGISTER_OP("BertTfLowRankGrad").Input("base: T").Input("upstream: T").Input("x: T").Input("narrow: float").Input("down: float")
    .Input("up: float").Attr("scaling: float").Attr("T: {float, bfloat16}").Output("of_x: T").Output("of_down: float")
    .Output("of_up: float").SetShapeFn(shaped_as({0, 4, 5}));
REGISTER_BERT_TF("BertTfLowRank", LowRank);
REGISTER_BERT_TF("BertTfLowRankGrad", LowRankGradient);
}  // namespace bert_tf::low_rank
