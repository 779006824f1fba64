// Rows of an embedding table and its moments with the updates that they missed; bert_tf/optimization/deferred.py has the formula.
//
// Shapes: V rows of the table, U that are read, D width, N steps of the training.

#include "ops.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace bert_tf::deferred {
constexpr int kNodes = 8;
constexpr double kNegligible = 1e-9;  // of the first term of a sum
constexpr double kPi = 3.14159265358979323846;

// Holds a variable's lock against dense writes, in shared mode as scatter updates do: the graph must order those after this.
class Read {
 public:
  tensorflow::Status open(OpKernelContext* context, int input, int rank) {
    TF_RETURN_IF_ERROR(tensorflow::LookupResource(context, tensorflow::HandleFromInput(context, input), &variable_));
    lock_ = std::make_unique<tensorflow::tf_shared_lock>(*variable_->mu());
    if (!variable_->is_initialized) return tensorflow::errors::FailedPrecondition("a variable has no value yet");
    const Tensor& held = *variable_->tensor();
    if (held.dtype() != tensorflow::DT_FLOAT || held.dims() != rank)
      return tensorflow::errors::InvalidArgument("variable ", input, " is not of float32 and rank ", rank);
    values = read<float>(held), rows = held.dim_size(0), width = rank > 1 ? held.dim_size(1) : 1;
    return tensorflow::OkStatus();
  }
  const float* values = nullptr;
  int64_t rows = 0, width = 0;

 private:
  tensorflow::core::RefCountPtr<tensorflow::Var> variable_;
  std::unique_ptr<tensorflow::tf_shared_lock> lock_;
};

// By step: rates, logarithms of epsilon, logarithms of the cumulative decay before it.
struct Schedule {
  const float *rates, *epsilons, *decays;  // [N], [N], [N + 1]
};

class MadeCurrent : public OpKernel {
 public:
  explicit MadeCurrent(Construction* c)
      : OpKernel(c), beta_1_(attribute<float>(c, "beta_1")), beta_2_(attribute<float>(c, "beta_2")) {
    const double shrinking = beta_1_ / std::sqrt(static_cast<double>(beta_2_));
    const int64_t count = std::ceil(std::log(kNegligible) / std::log(shrinking));
    for (int64_t i = 1; i <= count; ++i) {
      shrunk_.push_back(std::pow(shrinking, i));
      risen_.push_back(-0.5 * i * std::log(static_cast<double>(beta_2_)));
    }
    for (int k = 0; k < kNodes; ++k) {
      const double angle = (k + 0.5) * kPi / kNodes;
      cosines_[k] = std::cos(angle);
      for (int p = 0; p < kNodes; ++p) at_nodes_[p][k] = std::cos(p * angle) * (p ? 2.0 : 1.0) / kNodes;
    }
  }

  void Compute(OpKernelContext* context) override {
    Read table, first, second, current_at;
    int input = 0;
    for (Read* one : {&table, &first, &second}) {
      OP_REQUIRES_OK(context, one->open(context, input++, 2));
      OP_REQUIRES(context, one->rows == table.rows && one->width == table.width,
                  tensorflow::errors::InvalidArgument("moments have another shape than the table"));
    }
    OP_REQUIRES_OK(context, current_at.open(context, input, 1));
    OP_REQUIRES(context, current_at.rows == table.rows, tensorflow::errors::InvalidArgument("steps are not of all rows"));
    const int64_t steps = context->input(5).NumElements();
    OP_REQUIRES_OK(context, counted(context, {{6, steps}, {7, steps + 1}, {8, 1}}));
    const auto* ids = read<int32_t>(context->input(4));
    const Schedule schedule{floats(context, 5), floats(context, 6), floats(context, 7)};
    const int64_t now = context->input(8).scalar<float>()(), count = context->input(4).NumElements(), width = table.width;
    OP_REQUIRES(context, now <= steps, tensorflow::errors::InvalidArgument("step ", now, " is after the last"));
    for (int64_t i = 0; i < count; ++i) {
      OP_REQUIRES(context, ids[i] >= 0 && ids[i] < table.rows, tensorflow::errors::InvalidArgument("no row ", ids[i]));
      const float since = current_at.values[ids[i]];
      OP_REQUIRES(context, since >= 0 && since <= now, tensorflow::errors::InvalidArgument("row ", ids[i], " is of step ", since));
    }
    float* outputs[3];
    for (int part = 0; part < 3; ++part) {
      ALLOCATE(context, part, TensorShape({count, width}), output);
      outputs[part] = write<float>(output);
    }
    parallel(context, count, 4000 + 8 * width, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(4 * shrunk_.size() + 2 * width);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = ids[i] * width, since = current_at.values[ids[i]];
        float nodes[kNodes], weights[kNodes];
        const int terms = quadrature(schedule, since, now, scratch.data(), nodes, weights);
        float *root = scratch.data(), *sum = root + width;
        EACH(j, width) root[j] = std::sqrt(second.values[row + j]), sum[j] = 0.0f;
        for (int k = 0; k < terms; ++k) EACH(j, width) sum[j] += weights[k] / (root[j] + nodes[k]);
        const float grown = std::expm1(schedule.decays[now] - schedule.decays[since]);
        const float kept_1 = std::pow(beta_1_, now - since), kept_2 = std::pow(beta_2_, now - since);
        float *w = outputs[0] + i * width, *m = outputs[1] + i * width, *v = outputs[2] + i * width;
        EACH(j, width) {
          const float stored = table.values[row + j], mean = first.values[row + j];
          w[j] = stored + (stored * grown - mean * sum[j]);
          m[j] = mean * kept_1;
          v[j] = second.values[row + j] * kept_2;
        }
      }
    });
  }

 private:
  // Nodes and weights of the sum over the steps from `since` to `now`; returns their number. Few steps are nodes themselves.
  int quadrature(const Schedule& schedule, int64_t since, int64_t now, float* scratch, float* nodes, float* weights) const {
    const int64_t count = std::min<int64_t>(now - since, shrunk_.size());
    float *amount = scratch, *place = amount + count, *older = place + count, *newer = older + count;
    EACH(i, count) {
      const int64_t step = since + i;
      amount[i] = schedule.rates[step] * shrunk_[i] * exponential(schedule.decays[now] - schedule.decays[step + 1]);
      place[i] = schedule.epsilons[step] + risen_[i];
    }
    if (count <= kNodes) {
      EACH(k, count) nodes[k] = exponential(place[k]), weights[k] = amount[k];
      return count;
    }
    const float middle = (place[count - 1] + place[0]) / 2.0f, half = std::max((place[count - 1] - place[0]) / 2.0f, 1e-6f);
    EACH(i, count) {
      place[i] = std::min(std::max((place[i] - middle) / half, -1.0f), 1.0f);
      older[i] = place[i], newer[i] = 1.0f;  // Chebyshev's polynomials of degree -1 (as of 1) and 0
    }
    float moments[kNodes];
    for (int p = 0; p < kNodes; ++p) {
      float moment = 0.0f;
      EACH(i, count) {
        moment += amount[i] * newer[i];
        const float next = 2.0f * place[i] * newer[i] - older[i];
        older[i] = newer[i], newer[i] = next;
      }
      moments[p] = moment;
    }
    for (int k = 0; k < kNodes; ++k) {
      weights[k] = 0.0f;
      for (int p = 0; p < kNodes; ++p) weights[k] += moments[p] * at_nodes_[p][k];
      nodes[k] = exponential(middle + half * cosines_[k]);
    }
    return kNodes;
  }

  float beta_1_, beta_2_, cosines_[kNodes], at_nodes_[kNodes][kNodes];
  std::vector<float> shrunk_, risen_;  // by number of missed steps, from 1 on
};

REGISTER_OP("BertTfMadeCurrent").Input("table: resource").Input("first: resource").Input("second: resource")
    .Input("current_at: resource").Input("ids: int32").Input("rates: float").Input("epsilons: float").Input("decays: float")
    .Input("step: float").Attr("beta_1: float").Attr("beta_2: float").Output("weights: float").Output("m: float")
    .Output("v: float").SetIsStateful().SetShapeFn(shaped_as({-1, -1, -1}));
REGISTER_KERNEL_BUILDER(Name("BertTfMadeCurrent").Device(tensorflow::DEVICE_CPU), MadeCurrent);
}  // namespace bert_tf::deferred
