// Forms of a kernel's weights that products read: transposed, and rounded to bfloat16.

#include "ops.h"
#include "squares.h"

namespace bert_tf::weights {
class Transposed : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    OP_REQUIRES_OK(context, ranked(context, 0, 2));
    const int64_t rows = context->input(0).dim_size(0), columns = context->input(0).dim_size(1);
    ALLOCATE(context, 0, TensorShape({columns, rows}), output);
    const float* from = floats(context, 0);
    float* to = write<float>(output);
    // Bands of columns, which are rows of the output, each written by one thread.
    parallel(context, (columns + kSide - 1) / kSide, 2 * kSide * rows, [&](int64_t first, int64_t last) {
      for (int64_t band = first; band < last; ++band) {
        const int64_t j = band * kSide, squares = j + kSide <= columns ? rows / kSide * kSide : 0;
        for (int64_t i = 0; i < squares; i += kSide) transpose_square(from + i * columns + j, columns, to + j * rows + i, rows);
        for (int64_t i = squares; i < rows; ++i)
          for (int64_t k = j; k < std::min(columns, j + kSide); ++k) to[k * rows + i] = from[i * columns + k];
      }
    });
  }
};

class Narrowed : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    ALLOCATE(context, 0, context->input(0).shape(), output);
    const int64_t size = context->input(0).NumElements();
    const float* from = floats(context, 0);
    BFloat16* to = write<BFloat16>(output);
    parallel(context, (size + kPart - 1) / kPart, kPart / 4, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kPart, count = std::min(size, last * kPart) - begin;
      EACH(i, count) store(from[begin + i], to + begin + i);
    });
  }
};

REGISTER_OP("BertTfTransposed").Input("x: float").Output("y: float").SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
  tensorflow::shape_inference::ShapeHandle x;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
  c->set_output(0, c->Matrix(c->Dim(x, 1), c->Dim(x, 0)));
  return tensorflow::OkStatus();
});
REGISTER_OP("BertTfNarrowed").Input("x: float").Output("y: bfloat16").SetShapeFn(shaped_as({0}));
REGISTER_KERNEL_BUILDER(Name("BertTfTransposed").Device(tensorflow::DEVICE_CPU), Transposed);
REGISTER_KERNEL_BUILDER(Name("BertTfNarrowed").Device(tensorflow::DEVICE_CPU), Narrowed);
}  // namespace bert_tf::weights
