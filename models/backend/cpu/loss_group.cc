// The group of the loss: softmax cross-entropy, and the number of correctly classified samples.
#include <algorithm>
#include <cmath>

#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

// x is [n, classes]. y = softmax(x), loss = sum over n of -log y[label] / loss_divisor, and
// dx = (y - onehot) / loss_divisor. The maximum is subtracted before the exponential. Source:
// Goodfellow et al. 2016, section 4.1. With label smoothing the one-hot targets are smoothed.
class LossGroup final : public Group {
 public:
  LossGroup(const GroupContext& context, const ValueType& input)
      : context_(context),
        classes_(input.channels()),
        smoothing_(context.mode == Mode::kTrain ? context.graph.loss().label_smoothing : 0.0F) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.inputs_in_backward = context_.mode == Mode::kTrain ? 1 : 0;
    return needs;
  }

  void bind(const GroupMemory& memory) override { memory_ = memory; }

  void forward(LaneStep& step) override {
    step.loss = 0.0;
    step.num_correct = 0;
    for (std::int64_t i = 0; i < context_.n; ++i) {
      const float* x = memory_.inputs[0] + i * classes_;
      const std::int32_t label = step.labels[static_cast<std::size_t>(i)];
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < classes_; ++c) {
        if (x[c] > x[best]) best = c;
      }
      double sum = 0.0;
      for (std::int64_t c = 0; c < classes_; ++c)
        sum += static_cast<double>(std::exp(x[c] - x[best]));
      const auto chosen = static_cast<double>(x[label] - x[best]);
      step.loss += std::log(sum) - (smoothing_ == 0.0F ? chosen : smoothed(x, x[best], chosen));
      if (best == label) ++step.num_correct;
    }
    step.loss /= static_cast<double>(step.loss_divisor);
  }

  void backward(LaneStep& step) override {
    if (memory_.input_gradients[0] == nullptr) return;
    const float inverse_divisor = 1.0F / static_cast<float>(step.loss_divisor);
    const float other = smoothing_ / static_cast<float>(classes_);  // target of the other classes
    const float own = 1.0F - smoothing_ + other;
    for (std::int64_t i = 0; i < context_.n; ++i) {
      const float* x = memory_.inputs[0] + i * classes_;
      float* dx = memory_.input_gradients[0] + i * classes_;
      float largest = x[0];
      for (std::int64_t c = 1; c < classes_; ++c) largest = std::max(largest, x[c]);
      double sum = 0.0;
      for (std::int64_t c = 0; c < classes_; ++c) {
        dx[c] = std::exp(x[c] - largest);
        sum += static_cast<double>(dx[c]);
      }
      const float inverse_sum = static_cast<float>(1.0 / sum);
      for (std::int64_t c = 0; c < classes_; ++c) {
        const float target = c == step.labels[static_cast<std::size_t>(i)] ? own : other;
        dx[c] = (dx[c] * inverse_sum - target) * inverse_divisor;
      }
    }
  }

 private:
  // Returns the mean of the logits minus their maximum, weighted by the smoothed targets.
  double smoothed(const float* x, float largest, double chosen) const {
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += static_cast<double>(x[c] - largest);
    const auto smoothing = static_cast<double>(smoothing_);
    return (1.0 - smoothing) * chosen + smoothing * sum / static_cast<double>(classes_);
  }

  const GroupContext context_;
  const std::int64_t classes_;
  const float smoothing_;
  GroupMemory memory_;
};

}  // namespace

std::unique_ptr<Group> make_loss_group(const GroupContext& context, const ValueType& input) {
  return std::make_unique<LossGroup>(context, input);
}

}  // namespace syncopate
