// GELU of a product and its bias, and the gradient of both: one pass each.

#include "ops.h"

namespace bert_tf {
namespace {

struct Erf {
  static float value(float x) { return x * normal(x).distribution; }
  static float slope(float x) {
    const Normal at = normal(x);
    return __builtin_fmaf(x, at.density, at.distribution);
  }
};

// 0.5 (1 + tanh u) is 1 / (1 + e^(-2 u)), with u = sqrt(2 / pi) (x + 0.044715 x^3).
struct Tanh {
  static constexpr float kScale = 1.59576912f, kCube = 0.044715f;  // 2 sqrt(2 / pi)
  static float share(float x) { return 1.0f / (1.0f + exponential(-kScale * x * __builtin_fmaf(kCube * x, x, 1.0f))); }
  static float value(float x) { return x * share(x); }
  static float slope(float x) {
    const float s = share(x);
    return s + x * s * (1.0f - s) * kScale * __builtin_fmaf(3.0f * kCube * x, x, 1.0f);
  }
};

template <typename F, typename T>
void forward(const T* x, const float* bias, int64_t width, T* y) {
  EACH(j, width) store(F::value(widened(x[j]) + bias[j]), y + j);
}

template <typename F, typename T>
void backward(const T* upstream, const T* x, const float* bias, int64_t width, T* gradient, float* sums) {
  EACH(j, width) {
    const float g = widened(upstream[j]) * F::slope(widened(x[j]) + bias[j]);
    store(g, gradient + j);
    sums[j] += g;
  }
}

template <typename T>
class Gelu : public tensorflow::OpKernel {
 public:
  explicit Gelu(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("exact", &exact_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    ALLOCATE(context, 0, input.shape(), output);
    const int64_t width = context->input(1).NumElements(), rows = width ? input.NumElements() / width : 0;
    const auto* x = read<T>(input);
    auto* y = write<T>(output);
    const float* bias = floats(context, 1);
    const auto function = exact_ ? forward<Erf, typename Stored<T>::Type> : forward<Tanh, typename Stored<T>::Type>;
    parallel(context, rows, 4 * width, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) function(x + row * width, bias, width, y + row * width);
    });
  }

 private:
  bool exact_;
};

template <typename T>
class GeluGradient : public tensorflow::OpKernel {
 public:
  explicit GeluGradient(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("exact", &exact_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(1);
    ALLOCATE(context, 0, input.shape(), output);
    ALLOCATE(context, 1, context->input(2).shape(), sums);
    const int64_t width = context->input(2).NumElements();
    const Blocks blocks(width ? input.NumElements() / width : 0);
    const auto* upstream = read<T>(context->input(0));
    const auto* x = read<T>(input);
    auto* gradient = write<T>(output);
    const float* bias = floats(context, 2);
    const auto function = exact_ ? backward<Erf, typename Stored<T>::Type> : backward<Tanh, typename Stored<T>::Type>;
    std::vector<float> partial(blocks.count * width);
    parallel(context, blocks.count, 5 * width * blocks.size, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block)
        for (int64_t row = blocks.first(block); row < blocks.last(block); ++row) {
          const int64_t at = row * width;
          function(upstream + at, x + at, bias, width, gradient + at, partial.data() + block * width);
        }
    });
    add_up(partial.data(), blocks.count, width, width, sums->flat<float>().data());
  }

 private:
  bool exact_;
};

REGISTER_OP("BertTfGelu")
    .Input("x: T")
    .Input("bias: float")
    .Attr("exact: bool")
    .Attr("T: {float, bfloat16}")
    .Output("y: T")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return tensorflow::OkStatus();
    });
REGISTER_OP("BertTfGeluGrad")
    .Input("upstream: T")
    .Input("x: T")
    .Input("bias: float")
    .Attr("exact: bool")
    .Attr("T: {float, bfloat16}")
    .Output("of_x: T")
    .Output("of_bias: float")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(1));
      c->set_output(1, c->input(2));
      return tensorflow::OkStatus();
    });
REGISTER_BERT_TF("BertTfGelu", Gelu);
REGISTER_BERT_TF("BertTfGeluGrad", GeluGradient);

}  // namespace
}  // namespace bert_tf
