// What all operations share: threads of TensorFlow's own pool, pointers to what tensors hold, sums over rows.

#pragma once
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "vectors.h"

namespace bert_tf {
using Construction = tensorflow::OpKernelConstruction;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename T>
const T* read(const Tensor& tensor) { return static_cast<const T*>(tensor.data()); }

template <typename T>
T* write(Tensor* tensor) { return static_cast<T*>(tensor->data()); }

inline const float* floats(OpKernelContext* context, int input) { return read<float>(context->input(input)); }

// Null where an optional input is empty.
inline const uint8_t* mask_of(const Tensor& tensor) { return tensor.NumElements() ? read<uint8_t>(tensor) : nullptr; }

// What a loop relies on: the number of elements of an input, or no elements at all where it is optional.
struct Count {
  int input;
  int64_t elements;
  bool is_optional = false;
};

inline tensorflow::Status counted(OpKernelContext* context, std::initializer_list<Count> counts) {
  for (const Count& count : counts) {
    const int64_t found = context->input(count.input).NumElements();
    if (found != count.elements && !(count.is_optional && found == 0))
      return tensorflow::errors::InvalidArgument("input ", count.input, " has ", found, " elements, not ", count.elements);
  }
  return tensorflow::OkStatus();
}

// InvalidArgument unless an input has rows of this width.
inline tensorflow::Status rows_of(OpKernelContext* context, int input, int64_t width) {
  const TensorShape& shape = context->input(input).shape();
  if (shape.dims() && shape.dim_size(shape.dims() - 1) == width) return tensorflow::OkStatus();
  return tensorflow::errors::InvalidArgument("input ", input, " of shape ", shape.DebugString(), " has no rows of width ", width);
}

inline tensorflow::Status ranked(OpKernelContext* context, int input, int rank) {
  const TensorShape& shape = context->input(input).shape();
  if (shape.dims() == rank) return tensorflow::OkStatus();
  return tensorflow::errors::InvalidArgument("input ", input, " of shape ", shape.DebugString(), " is not of rank ", rank);
}

// InvalidArgument unless an input holds the [B + 1] first rows of sequences of at most `longest` rows each.
inline tensorflow::Status starts_of(OpKernelContext* context, int input, int64_t batch, int64_t longest) {
  TF_RETURN_IF_ERROR(counted(context, {{input, batch + 1}}));
  const int32_t* starts = read<int32_t>(context->input(input));
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t count = static_cast<int64_t>(starts[i + 1]) - starts[i];
    if (count < 0 || count > longest)
      return tensorflow::errors::InvalidArgument("input ", input, ": sequence ", i, " has ", count, " rows");
  }
  return tensorflow::OkStatus();
}

// As `starts_of`, of sequences that are all rows.
inline tensorflow::Status starts_of_all(OpKernelContext* context, int input, int64_t batch, int64_t rows, int64_t longest) {
  TF_RETURN_IF_ERROR(starts_of(context, input, batch, longest));
  const int32_t* starts = read<int32_t>(context->input(input));
  if (starts[0] == 0 && starts[batch] == rows) return tensorflow::OkStatus();
  return tensorflow::errors::InvalidArgument("input ", input, " is from ", starts[0], " to ", starts[batch], ", not of ", rows, " rows");
}

// Calls work(first, last) for parts of [0, units) on the threads of the session. `cost`: cycles of a unit, about.
inline void parallel(OpKernelContext* context, int64_t units, int64_t cost, const std::function<void(int64_t, int64_t)>& work) {
  context->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(units, std::max<int64_t>(cost, 1), work);
}

// Rows in at most `most` blocks. Their number depends on that of rows alone, so that sums over rows do not depend on the threads.
struct Blocks {
  int64_t rows, size, count;
  explicit Blocks(int64_t rows, int64_t most = 32)
      : rows(rows), size(std::max<int64_t>(16, (rows + most - 1) / most)), count((rows + size - 1) / size) {}
  int64_t first(int64_t block) const { return block * size; }
  int64_t last(int64_t block) const { return std::min(rows, (block + 1) * size); }
};

// Arrays of several sizes in parts, which one thread computes at a time and whose number does not depend on the threads.
constexpr int64_t kPart = 1 << 14;

struct Part {
  int array;
  int64_t first, last;
};

inline std::vector<Part> parts_of(const std::vector<int64_t>& sizes) {
  std::vector<Part> parts;
  for (size_t i = 0; i < sizes.size(); ++i)
    for (int64_t first = 0; first < sizes[i]; first += kPart)
      parts.push_back({static_cast<int>(i), first, std::min(sizes[i], first + kPart)});
  return parts;
}

// sums[j] = partial[j] + partial[stride + j] + ..., each [width].
inline void add_up(const float* partial, int64_t parts, int64_t stride, int64_t width, float* sums) {
  std::fill(sums, sums + width, 0.0f);
  for (int64_t part = 0; part < parts; ++part)
    EACH(j, width) sums[j] += partial[part * stride + j];
}

template <typename V>
V attribute(Construction* context, const char* name) {
  V value{};
  context->SetStatus(context->GetAttr(name, &value));
  return value;
}

// Shapes of outputs: those of some inputs, by number, or unknown where it is negative.
inline auto shaped_as(std::vector<int> inputs) {
  return [inputs](tensorflow::shape_inference::InferenceContext* c) {
    for (size_t i = 0; i < inputs.size(); ++i) c->set_output(i, inputs[i] < 0 ? c->UnknownShape() : c->input(inputs[i]));
    return tensorflow::OkStatus();
  };
}
}  // namespace bert_tf

#define ALLOCATE(context, number, shape, tensor) \
  Tensor* tensor = nullptr;                      \
  OP_REQUIRES_OK(context, context->allocate_output(number, shape, &tensor))

#define REGISTER_BERT_TF(name, kernel)                                                                                          \
  REGISTER_KERNEL_BUILDER(Name(name).Device(tensorflow::DEVICE_CPU).TypeConstraint<float>("T"), kernel<float>);                 \
  REGISTER_KERNEL_BUILDER(Name(name).Device(tensorflow::DEVICE_CPU).TypeConstraint<Eigen::bfloat16>("T"), kernel<BFloat16>)
