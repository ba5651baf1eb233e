// The groups of the losses with numbers as targets: binary cross-entropy, mean squared error, and
// the end of a stage of a pipeline.
#include <algorithm>
#include <cmath>

#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

// The loss and the metric of one value, not divided by K, and the derivative of the loss.
struct ValueLoss {
  double loss;
  double metric;
  float slope;
};

ValueLoss squared_error(float x, float t) {
  const float difference = x - t;
  const auto wide = static_cast<double>(difference);
  return {wide * wide, std::abs(wide), 2.0F * difference};
}

// exp() of a number that is not positive does not overflow. Source: the documentation of
// sigmoid_cross_entropy_with_logits of TensorFlow.
ValueLoss binary_cross_entropy(float x, float t) {
  const float decay = std::exp(-std::abs(x));
  const float sigmoid = (x >= 0.0F ? 1.0F : decay) / (1.0F + decay);
  const double loss =
      static_cast<double>(std::max(x, 0.0F) - x * t) + std::log1p(static_cast<double>(decay));
  return {loss, (x >= 0.0F) == (t >= 0.5F) ? 1.0 : 0.0, sigmoid - t};
}

// x and t are [n, K]. The loss and the metric of a sample are means over its K values, and dx =
// slope / (K * loss_divisor).
template <ValueLoss (*kLoss)(float, float)>
class NumberLossGroup final : public PlainGroup {
 public:
  explicit NumberLossGroup(const GroupSite& site)
      : PlainGroup(site), values_(site.input().channels()) {}

  GroupNeeds needs() const override { return {.inputs_in_backward = trains() ? 1 : 0}; }

  void forward(LaneStep& step) override {
    const auto count = static_cast<double>(values_);
    step.loss = 0.0;
    step.metric = 0.0;
    for (std::int64_t i = 0; i < context().n; ++i) {
      double loss = 0.0;
      double metric = 0.0;
      for (std::int64_t k = i * values_; k < (i + 1) * values_; ++k) {
        const ValueLoss value = kLoss(x()[k], targets(step)[k]);
        loss += value.loss;
        metric += value.metric;
      }
      step.loss += loss / count;
      step.metric += metric / count;
    }
    step.loss /= static_cast<double>(step.loss_divisor);
  }

  void backward(LaneStep& step) override {
    float* const into = dx();
    if (into == nullptr) return;
    const float weight = 1.0F / static_cast<float>(step.loss_divisor * values_);
    for (std::int64_t k = 0; k < context().n * values_; ++k) {
      into[k] = kLoss(x()[k], targets(step)[k]).slope * weight;
    }
  }

 private:
  static const float* targets(const LaneStep& step) {
    return reinterpret_cast<const float*>(step.target.data());
  }

  const std::int64_t values_;  // K
};

// The end of a stage: the gradient of its output is the target.
class LaterStagesGroup final : public PlainGroup {
 public:
  explicit LaterStagesGroup(const GroupSite& site) : PlainGroup(site), input_(site.input()) {}

  void forward(LaneStep& step) override {
    step.loss = 0.0;
    step.metric = 0.0;
  }

  void backward(LaneStep& step) override {
    const auto* const gradient = reinterpret_cast<const float*>(step.target.data());
    if (input_.layout == Layout::kBlocked) {
      kernels().interleaved_to_blocked(gradient, dx(), context().blocked(input_),
                                       input_.channels());
    } else {
      std::copy_n(gradient, context().n * num_elements(input_.shape), dx());
    }
  }

 private:
  const ValueType input_;
};

}  // namespace

std::unique_ptr<Group> make_number_loss_group(const GroupSite& site, LossKind kind) {
  if (kind == LossKind::kLaterStages) return std::make_unique<LaterStagesGroup>(site);
  if (kind == LossKind::kMeanSquaredError) {
    return std::make_unique<NumberLossGroup<squared_error>>(site);
  }
  return std::make_unique<NumberLossGroup<binary_cross_entropy>>(site);
}

}  // namespace syncopate
