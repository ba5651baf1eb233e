// The group of softmax cross-entropy and of the number of correctly classified samples.
#include <algorithm>
#include <cmath>

#include "models/backend/cpu/group.h"

namespace syncopate {
namespace {

// x is [n, rows, classes]; a sample has one row, or one per pixel of a map. y = softmax(x), and the
// loss of a row is -log y[label]. The loss of a sample is the mean over its rows that count, and
// dx = (y - onehot) / (rows that count * loss_divisor). The maximum is subtracted before the
// exponential. Source: Goodfellow et al. 2016, section 4.1. With label smoothing the one-hot
// targets are smoothed.
class LossGroup final : public PlainGroup {
 public:
  LossGroup(const GroupSite& site, const LossOp& op)
      : PlainGroup(site),
        shape_(site.blocked(site.input())),
        is_map_(site.input().layout == Layout::kBlocked),
        rows_(site.input().pixels()),
        classes_(site.input().channels()),
        smoothing_(trains() ? op.label_smoothing : 0.0F) {}

  GroupNeeds needs() const override {
    GroupNeeds needs;
    needs.inputs_in_backward = trains() ? 1 : 0;
    if (!is_map_) return needs;
    needs.forward_scratch = row_bytes();
    if (trains()) needs.backward_scratch = row_bytes();
    return needs;
  }

  void forward(LaneStep& step) override {
    const float* x = in_rows(memory().forward_scratch);
    step.loss = 0.0;
    step.metric = 0.0;
    for (std::int64_t i = 0; i < context().n; ++i) {
      const std::span<const std::int32_t> labels = labels_of(step, i);
      double loss = 0.0;
      std::int64_t correct = 0;
      for (const std::int32_t label : labels) {
        if (counts(label)) correct += add_row(x, label, loss) ? 1 : 0;
        x += classes_;
      }
      if (!is_map_) {
        step.loss += loss;
        step.metric += static_cast<double>(correct);
        continue;
      }
      const std::int64_t rows = num_counting(labels);
      step.loss += rows == 0 ? 0.0 : loss / static_cast<double>(rows);
      step.metric += rows == 0 ? 1.0 : static_cast<double>(correct) / static_cast<double>(rows);
    }
    step.loss /= static_cast<double>(step.loss_divisor);
  }

  void backward(LaneStep& step) override {
    float* const gradient = dx();
    if (gradient == nullptr) return;
    // A map's gradient is computed in place of its rows.
    const float* x = in_rows(memory().backward_scratch);
    float* dx = is_map_ ? reinterpret_cast<float*>(memory().backward_scratch) : gradient;
    for (std::int64_t i = 0; i < context().n; ++i) {
      const std::span<const std::int32_t> labels = labels_of(step, i);
      const std::int64_t rows = is_map_ ? num_counting(labels) : 1;
      const float weight =
          1.0F / static_cast<float>(step.loss_divisor * std::max<std::int64_t>(rows, 1));
      for (const std::int32_t label : labels) {
        if (counts(label)) {
          differentiate_row(x, label, weight, dx);
        } else {
          std::fill_n(dx, classes_, 0.0F);
        }
        x += classes_;
        dx += classes_;
      }
    }
    if (is_map_) {
      kernels().interleaved_to_blocked(reinterpret_cast<const float*>(memory().backward_scratch),
                                       gradient, shape_, classes_);
    }
  }

 private:
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(context().n * rows_ * classes_) * sizeof(float);
  }
  // Returns the logits as [n, rows, classes]: a map's logits are copied to `scratch`.
  const float* in_rows(std::byte* scratch) const {
    if (!is_map_) return x();
    auto* const rows = reinterpret_cast<float*>(scratch);
    kernels().blocked_to_interleaved(x(), rows, shape_, classes_);
    return rows;
  }
  std::span<const std::int32_t> labels_of(const LaneStep& step, std::int64_t sample) const {
    const auto* const labels = reinterpret_cast<const std::int32_t*>(step.target.data());
    return {labels + sample * rows_, static_cast<std::size_t>(rows_)};
  }
  bool counts(std::int32_t label) const { return !is_map_ || label != kUncounted; }
  std::int64_t num_counting(std::span<const std::int32_t> labels) const {
    return std::ranges::count_if(labels, [this](std::int32_t label) { return counts(label); });
  }

  // Adds the loss of a row. Returns whether its label has the largest logit.
  bool add_row(const float* x, std::int32_t label, double& loss) const {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes_; ++c) {
      if (x[c] > x[best]) best = c;
    }
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c)
      sum += static_cast<double>(std::exp(x[c] - x[best]));
    const auto chosen = static_cast<double>(x[label] - x[best]);
    loss += std::log(sum) - (smoothing_ == 0.0F ? chosen : smoothed(x, x[best], chosen));
    return best == label;
  }

  // x and dx may be the same row.
  void differentiate_row(const float* x, std::int32_t label, float weight, float* dx) const {
    const float other = smoothing_ / static_cast<float>(classes_);  // target of the other classes
    const float own = 1.0F - smoothing_ + other;
    float largest = x[0];
    for (std::int64_t c = 1; c < classes_; ++c) largest = std::max(largest, x[c]);
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      dx[c] = std::exp(x[c] - largest);
      sum += static_cast<double>(dx[c]);
    }
    const float inverse_sum = static_cast<float>(1.0 / sum);
    for (std::int64_t c = 0; c < classes_; ++c) {
      dx[c] = (dx[c] * inverse_sum - (c == label ? own : other)) * weight;
    }
  }

  // Returns the mean of the logits minus their maximum, weighted by the smoothed targets.
  double smoothed(const float* x, float largest, double chosen) const {
    double sum = 0.0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += static_cast<double>(x[c] - largest);
    const auto smoothing = static_cast<double>(smoothing_);
    return (1.0 - smoothing) * chosen + smoothing * sum / static_cast<double>(classes_);
  }

  const BlockedShape shape_;
  const bool is_map_;
  const std::int64_t rows_;  // of a sample
  const std::int64_t classes_;
  const float smoothing_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const LossOp& op) {
  if (!has_classes(op.kind)) return make_number_loss_group(site, op.kind);
  return std::make_unique<LossGroup>(site, op);
}

}  // namespace syncopate
