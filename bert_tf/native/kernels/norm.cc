// LayerNorm of residual + dropout(x + bias), and the gradient of all of it: one pass over the rows each.
//
// Empty tensors stand for no bias, no dropout and no residual.

#include "ops.h"

namespace bert_tf::norm {
template <typename T>
class Norm : public OpKernel {
 public:
  explicit Norm(Construction* c) : OpKernel(c), epsilon_(attribute<float>(c, "epsilon")), scale_(attribute<float>(c, "scale")) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    const int64_t width = context->input(4).NumElements(), rows = width ? input.NumElements() / width : 0;
    OP_REQUIRES_OK(context, rows_of(context, 0, width));
    const int64_t size = input.NumElements();
    OP_REQUIRES_OK(context, counted(context, {{1, width, true}, {2, size, true}, {3, size, true}, {5, width}}));
    ALLOCATE(context, 0, input.shape(), output);
    ALLOCATE(context, 1, input.shape(), normal);
    ALLOCATE(context, 2, TensorShape({rows}), scales);
    const T *x = read<T>(input), *residual = context->input(3).NumElements() ? read<T>(context->input(3)) : nullptr;
    const float* bias = context->input(1).NumElements() ? floats(context, 1) : nullptr;
    const uint8_t* kept = mask_of(context->input(2));
    const float *gamma = floats(context, 4), *beta = floats(context, 5);
    T *y = write<T>(output), *normalized = write<T>(normal);
    float* inverse = write<float>(scales);
    parallel(context, rows, 5 * width, [&](int64_t first, int64_t last) {
      std::vector<float> sums(width);
      for (int64_t row = first; row < last; ++row) {
        const int64_t at = row * width;
        float* sum = sums.data();
        EACH(j, width) sum[j] = widened(x[at + j]);
        if (bias) EACH(j, width) sum[j] += bias[j];
        if (kept) EACH(j, width) sum[j] *= static_cast<float>(kept[at + j]) * scale_;
        if (residual) EACH(j, width) sum[j] += widened(residual[at + j]);
        float mean = 0.0f, variance = 0.0f;
        EACH(j, width) mean += sum[j];
        mean /= width;
        EACH(j, width) sum[j] -= mean, variance += sum[j] * sum[j];
        const float scale = 1.0f / std::sqrt(variance / width + epsilon_);
        inverse[row] = scale;
        EACH(j, width) {
          store(sum[j] * scale, normalized + at + j);
          store(fma(sum[j] * scale, gamma[j], beta[j]), y + at + j);
        }
      }
    });
  }

 private:
  float epsilon_, scale_;
};

template <typename T>
class NormGradient : public OpKernel {
 public:
  explicit NormGradient(Construction* c) : OpKernel(c), scale_(attribute<float>(c, "scale")) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& normal = context->input(1);
    const int64_t width = context->input(3).NumElements();
    const Blocks blocks(width ? normal.NumElements() / width : 0);
    OP_REQUIRES_OK(context, rows_of(context, 1, width));
    OP_REQUIRES_OK(context, counted(context, {{0, normal.NumElements()}, {2, blocks.rows}, {4, normal.NumElements(), true}}));
    const uint8_t* kept = mask_of(context->input(4));
    ALLOCATE(context, 0, kept ? normal.shape() : TensorShape({0, width}), of_x);  // else it is that of the residual
    ALLOCATE(context, 1, normal.shape(), of_residual);
    const T *upstream = read<T>(context->input(0)), *normalized = read<T>(normal);
    const float *inverse = floats(context, 2), *gamma = floats(context, 3);
    T *dropped = kept ? write<T>(of_x) : nullptr, *whole = write<T>(of_residual);
    std::vector<float> partial(blocks.count * 3 * width);  // gamma, beta, bias
    parallel(context, blocks.count, 8 * width * blocks.size, [&](int64_t first, int64_t last) {
      std::vector<float> scratch(width);
      for (int64_t block = first; block < last; ++block) {
        float *of_gamma = partial.data() + block * 3 * width, *of_beta = of_gamma + width, *of_bias = of_beta + width;
        for (int64_t row = blocks.first(block); row < blocks.last(block); ++row) {
          const int64_t at = row * width;
          float sum = 0.0f, along = 0.0f;
          float* g = scratch.data();
          EACH(j, width) {
            const float up = widened(upstream[at + j]), n = widened(normalized[at + j]);
            of_gamma[j] += up * n, of_beta[j] += up;
            g[j] = up * gamma[j];
            sum += g[j], along += g[j] * n;
          }
          sum /= width, along /= width;
          EACH(j, width) {
            g[j] = (g[j] - sum - widened(normalized[at + j]) * along) * inverse[row];
            store(g[j], whole + at + j);
          }
          if (kept) EACH(j, width) {
              g[j] *= static_cast<float>(kept[at + j]) * scale_;
              store(g[j], dropped + at + j);
            }
          EACH(j, width) of_bias[j] += g[j];
        }
      }
    });
    for (int sums = 0; sums < 3; ++sums) {
      ALLOCATE(context, 2 + sums, TensorShape({width}), output);
      add_up(partial.data() + sums * width, blocks.count, 3 * width, width, write<float>(output));
    }
  }

 private:
  float scale_;
};

REGISTER_OP("BertTfNorm").Input("x: T").Input("bias: float").Input("kept: uint8").Input("residual: T").Input("gamma: float")
    .Input("beta: float").Attr("epsilon: float").Attr("scale: float").Attr("T: {float, bfloat16}").Output("y: T")
    .Output("normal: T").Output("inverse: float").SetShapeFn(shaped_as({0, 0, -1}));
REGISTER_OP("BertTfNormGrad").Input("upstream: T").Input("normal: T").Input("inverse: float").Input("gamma: float")
    .Input("kept: uint8").Attr("scale: float").Attr("T: {float, bfloat16}").Output("of_x: T").Output("of_residual: T")
    .Output("of_gamma: float").Output("of_beta: float").Output("of_bias: float").SetShapeFn(shaped_as({1, 1, 3, 3, 3}));
REGISTER_BERT_TF("BertTfNorm", Norm);
REGISTER_BERT_TF("BertTfNormGrad", NormGradient);
}  // namespace bert_tf::norm
