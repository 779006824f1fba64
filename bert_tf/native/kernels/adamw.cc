// One update of all variables by AdamW (Loshchilov and Hutter, 2019), clipped: gradients (float32 or bfloat16), moments and
// weights are read once.

#include "ops.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace bert_tf::adamw {
// A variable that is written to: in place where nobody else holds its array, else into a new one.
class Written {
 public:
  tensorflow::Status open(OpKernelContext* context, int input) {
    TF_RETURN_IF_ERROR(tensorflow::LookupResource(context, tensorflow::HandleFromInput(context, input), &variable_));
    lock_ = std::make_unique<tensorflow::mutex_lock>(*variable_->mu());
    Tensor* held = variable_->tensor();
    if (!variable_->is_initialized) return tensorflow::errors::FailedPrecondition("a variable has no value yet");
    if (held->dtype() != tensorflow::DT_FLOAT) return tensorflow::errors::InvalidArgument("a variable is not of float32");
    from = read<float>(*held), to = write<float>(held), size = held->NumElements();
    if (held->RefCountIsOne()) return tensorflow::OkStatus();
    TF_RETURN_IF_ERROR(context->allocate_temp(held->dtype(), held->shape(), &other_));
    to = write<float>(&other_);
    return tensorflow::OkStatus();
  }
  void close() {  // when it is written
    if (to != from) *variable_->tensor() = other_;
  }
  const float* from = nullptr;
  float* to = nullptr;
  int64_t size = 0;

 private:
  tensorflow::core::RefCountPtr<tensorflow::Var> variable_;
  std::unique_ptr<tensorflow::mutex_lock> lock_;
  Tensor other_;
};

class AdamW : public OpKernel {
 public:
  explicit AdamW(Construction* c)
      : OpKernel(c), count_(attribute<int>(c, "N")), share_1_(attribute<float>(c, "share_1")),
        share_2_(attribute<float>(c, "share_2")), factors_(attribute<std::vector<float>>(c, "factors")),
        decays_(attribute<std::vector<float>>(c, "decays")) {
    OP_REQUIRES(c, c->num_inputs() == 4 * count_ + 4 && factors_.size() == count_ && decays_.size() == count_,
                tensorflow::errors::InvalidArgument("gradients, factors and decays must be of ", count_, " variables"));
  }

  void Compute(OpKernelContext* context) override {
    std::vector<Written> written(3 * count_);  // weights, first and second moments
    std::vector<int64_t> sizes(count_);
    for (int i = 0; i < 3 * count_; ++i) {
      OP_REQUIRES_OK(context, written[i].open(context, i));
      sizes[i % count_] = context->input(3 * count_ + i % count_).NumElements();
      OP_REQUIRES(context, written[i].size == sizes[i % count_], tensorflow::errors::InvalidArgument("sizes differ"));
    }
    for (int number = 0; number < 4; ++number) OP_REQUIRES_OK(context, counted(context, {{4 * count_ + number, 1}}));
    const std::vector<Part> parts = parts_of(sizes);
    const auto scalar = [&](int number) { return context->input(4 * count_ + number).scalar<float>()(); };
    const float rate = scalar(0), clip = scalar(1), correction = scalar(2), epsilon = scalar(3);
    parallel(context, parts.size(), 4 * kPart, [&](int64_t first, int64_t last) {
      for (int64_t number = first; number < last; ++number) {
        const Part& part = parts[number];
        const int i = part.array;
        const Tensor& gradient = context->input(3 * count_ + i);
        const float own = rate * factors_[i];
        const Step step{clip, 1.0f - own * decays_[i], own * correction, epsilon};
        const Written* of = &written[i];
        if (gradient.dtype() == tensorflow::DT_FLOAT) update(read<float>(gradient), of, part, step);
        else update(read<BFloat16>(gradient), of, part, step);
      }
    });
    for (Written& one : written) one.close();
  }

 private:
  struct Step {
    float clip, kept, size, epsilon;
  };

  // `of`: the weights; moments of the same variable follow at distances of `count_`.
  template <typename T>
  void update(const T* gradient, const Written* of, const Part& part, const Step& step) const {
    const Written &w = of[0], &m = of[count_], &v = of[2 * count_];
    _Pragma("GCC ivdep") for (int64_t j = part.first; j < part.last; ++j) {
      const float g = widened(gradient[j]) * step.clip;
      const float mean = m.from[j] + (g - m.from[j]) * share_1_;
      const float square = v.from[j] + (g * g - v.from[j]) * share_2_;
      m.to[j] = mean;
      v.to[j] = square;
      w.to[j] = w.from[j] * step.kept - step.size * mean / (std::sqrt(square) + step.epsilon);
    }
  }

  int count_;
  float share_1_, share_2_;  // of a gradient in the moments: 1 - beta, which float32's beta would change by 1e-5
  std::vector<float> factors_, decays_;
};

REGISTER_OP("BertTfAdamW").Input("weights: N * resource").Input("first: N * resource").Input("second: N * resource")
    .Input("gradients: G").Input("rate: float").Input("clip: float").Input("correction: float").Input("epsilon: float")
    .Attr("N: int >= 1").Attr("G: list({float, bfloat16}) >= 1").Attr("share_1: float").Attr("share_2: float")
    .Attr("factors: list(float)").Attr("decays: list(float)").SetIsStateful();
REGISTER_KERNEL_BUILDER(Name("BertTfAdamW").Device(tensorflow::DEVICE_CPU), AdamW);
}  // namespace bert_tf::adamw
