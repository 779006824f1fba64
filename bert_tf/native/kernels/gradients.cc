// The norm of all gradients together, each float32 or bfloat16: one pass, the sums in an order that no number of threads changes.

#include "ops.h"

namespace bert_tf::gradients {
template <typename T>
float squares(const T* from, int64_t count) {
  float sum = 0.0f;
  EACH(i, count) sum += widened(from[i]) * widened(from[i]);
  return sum;
}

class GlobalNorm : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    std::vector<int64_t> sizes;
    for (int i = 0; i < context->num_inputs(); ++i) sizes.push_back(context->input(i).NumElements());
    const std::vector<Part> parts = parts_of(sizes);
    std::vector<float> sums(parts.size());
    parallel(context, parts.size(), kPart / 4, [&](int64_t first, int64_t last) {
      for (int64_t number = first; number < last; ++number) {
        const Part& part = parts[number];
        const Tensor& given = context->input(part.array);
        const int64_t count = part.last - part.first;
        sums[number] = given.dtype() == tensorflow::DT_FLOAT ? squares(read<float>(given) + part.first, count)
                                                             : squares(read<BFloat16>(given) + part.first, count);
      }
    });
    ALLOCATE(context, 0, TensorShape({}), output);
    double total = 0.0;
    for (float sum : sums) total += sum;
    *write<float>(output) = static_cast<float>(std::sqrt(total));
  }
};

REGISTER_OP("BertTfGlobalNorm").Input("gradients: G").Output("norm: float").Attr("G: list({float, bfloat16}) >= 1")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->Scalar());
      return tensorflow::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("BertTfGlobalNorm").Device(tensorflow::DEVICE_CPU), GlobalNorm);
}  // namespace bert_tf::gradients
