// GELU of a product and its bias, and the gradient of both: one pass each.

#include "ops.h"

namespace bert_tf::gelu {
struct Erf {
  static float value(float x) { return x * normal(x).distribution; }
  static float slope(float x) {
    const Normal at = normal(x);
    return fma(x, at.density, at.distribution);
  }
};

// 0.5 (1 + tanh(u / 2)) is 1 / (1 + e^-u), with u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
struct Tanh {
  static constexpr float kScale = 1.59576912f, kCube = 0.044715f;  // 2 sqrt(2 / pi)
  static float share(float x) {
    const float u = kScale * x * fma(kCube * x, x, 1.0f);
    return 1.0f / (1.0f + exponential(u < -88.0f ? 88.0f : -u));  // which takes at most 88
  }
  static float value(float x) { return x * share(x); }
  static float slope(float x) {
    const float s = share(x);
    return s + x * s * (1.0f - s) * kScale * fma(3.0f * kCube * x, x, 1.0f);
  }
};

// Of both operations: rows of width `bias`.
class Activation : public OpKernel {
 public:
  explicit Activation(Construction* c) : OpKernel(c), exact_(attribute<bool>(c, "exact")) {}

 protected:
  bool exact_;
};

template <typename T>
class Gelu : public Activation {
 public:
  using Activation::Activation;
  void Compute(OpKernelContext* context) override { exact_ ? run<Erf>(context) : run<Tanh>(context); }

 private:
  template <typename F>
  void run(OpKernelContext* context) {
    OP_REQUIRES_OK(context, rows_of(context, 0, context->input(1).NumElements()));
    ALLOCATE(context, 0, context->input(0).shape(), output);
    const int64_t width = context->input(1).NumElements(), rows = width ? output->NumElements() / width : 0;
    const auto* x = read<T>(context->input(0));
    auto* y = write<T>(output);
    const float* bias = floats(context, 1);
    parallel(context, rows, 4 * width, [&](int64_t first, int64_t last) {
      for (int64_t at = first * width; at < last * width; at += width)
        EACH(j, width) store(F::value(widened(x[at + j]) + bias[j]), y + at + j);
    });
  }
};

template <typename T>
class GeluGradient : public Activation {
 public:
  using Activation::Activation;
  void Compute(OpKernelContext* context) override { exact_ ? run<Erf>(context) : run<Tanh>(context); }

 private:
  template <typename F>
  void run(OpKernelContext* context) {
    OP_REQUIRES_OK(context, rows_of(context, 1, context->input(2).NumElements()));
    OP_REQUIRES_OK(context, counted(context, {{0, context->input(1).NumElements()}}));
    ALLOCATE(context, 0, context->input(1).shape(), output);
    ALLOCATE(context, 1, context->input(2).shape(), sums);
    const int64_t width = sums->NumElements();
    const Blocks blocks(width ? output->NumElements() / width : 0);
    const auto *upstream = read<T>(context->input(0)), *x = read<T>(context->input(1));
    auto* gradient = write<T>(output);
    const float* bias = floats(context, 2);
    std::vector<float> partial(blocks.count * width);
    parallel(context, blocks.count, 5 * width * blocks.size, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        float* sum = partial.data() + block * width;
        for (int64_t at = blocks.first(block) * width; at < blocks.last(block) * width; at += width)
          EACH(j, width) {
            const float g = widened(upstream[at + j]) * F::slope(widened(x[at + j]) + bias[j]);
            store(g, gradient + at + j);
            sum[j] += g;
          }
      }
    });
    add_up(partial.data(), blocks.count, width, width, write<float>(sums));
  }
};

REGISTER_OP("BertTfGelu").Input("x: T").Input("bias: float").Attr("exact: bool").Attr("T: {float, bfloat16}").Output("y: T")
    .SetShapeFn(shaped_as({0}));
REGISTER_OP("BertTfGeluGrad").Input("upstream: T").Input("x: T").Input("bias: float").Attr("exact: bool")
    .Attr("T: {float, bfloat16}").Output("of_x: T").Output("of_bias: float").SetShapeFn(shaped_as({1, 2}));
REGISTER_BERT_TF("BertTfGelu", Gelu);
REGISTER_BERT_TF("BertTfGeluGrad", GeluGradient);
}  // namespace bert_tf::gelu
