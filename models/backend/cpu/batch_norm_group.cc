// The group batch_norm (+ add) (+ ReLU). Statistics are summed over the lanes of the replica and,
// if there is a reducer, over replicas. oneDNN cannot compute this: its backward omits the terms of
// the statistics when the caller supplies them.
#include <algorithm>
#include <cmath>

#include "models/backend/cpu/group.h"

namespace syncopate {

BatchNormSums::BatchNormSums(int lanes, std::int64_t channels,
                             StatisticsReducer* reducer_of_replicas)
    : width(2 * channels + 1),
      slots(static_cast<std::size_t>(lanes * width), 0.0),
      totals(static_cast<std::size_t>(width), 0.0),
      reducer(reducer_of_replicas) {}

std::span<const double> BatchNormSums::total(LanePool& lanes, int lane) {
  lanes.barrier();
  if (lane == 0) {
    std::fill(totals.begin(), totals.end(), 0.0);
    for (int l = 0; l < lanes.count(); ++l) {
      const double* slot = of_lane(l);
      for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += slot[i];
    }
    if (reducer != nullptr) reducer->sum(totals);
  }
  lanes.barrier();
  return totals;
}

namespace {

class BatchNormGroup final : public PlainGroup {
 public:
  BatchNormGroup(const GroupSite& site, const BatchNormOp& op)
      : PlainGroup(site),
        op_(op),
        channels_(site.output.channels()),
        shape_(site.blocked(site.output)),
        shared_(*site.shared),
        gamma_(value(0)),
        beta_(value(1)),
        running_mean_(state_of(site, node().state.at(0))),
        running_variance_(state_of(site, node().state.at(1))) {
    const auto padded = static_cast<std::size_t>(shape_.blocks * site.kernels.block);
    for (std::vector<float>* row : {&scale_, &shift_, &mean_, &inverse_deviation_, &m_, &k_}) {
      row->assign(padded, 0.0F);
    }
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (!trains()) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group().relu && group().add;
    needs.takes_two_gradients = true;
    // The addend's gradient is the output gradient, masked by the ReLU, and overwrites it in place.
    // Without an addend, the gradient of batch norm's input overwrites the output gradient.
    needs.gradient_in_place = group().add ? 1 : 0;
    return needs;
  }

  void forward(LaneStep& step) override {
    if (trains()) {
      double* sums = shared_.forward.of_lane(context().lane);
      kernels().batch_norm_statistics(x(), shape_, sums);
      sums[shared_.forward.width - 1] = static_cast<double>(context().n * shape_.pixels);
      use_batch_statistics(shared_.forward.total(step.lanes, context().lane));
    } else {
      use_running_statistics();
    }
    kernels().batch_norm_apply(x(), group().add ? x(1) : nullptr, y(), shape_, scale_.data(),
                               shift_.data(), group().relu);
  }

  void backward(LaneStep& step) override {
    const bool two = memory().output_gradients.size() > 1;
    // If no map is added to batch norm's output, the ReLU's mask can be computed from the input x.
    // Computing the mask twice is faster than storing the masked gradient and reading it again.
    const bool mask_again = group().relu && !group().add && !two;
    const bool store_sum = two || (group().relu && !mask_again);
    float* const dz = group().add && dx(1) != nullptr ? dx(1) : dy();
    const BatchNormBackward args = {.dy = dy(),
                                    .dy2 = two ? memory().output_gradients[1] : nullptr,
                                    .x = x(),
                                    .y = group().add ? y() : nullptr,
                                    .scale = scale_.data(),
                                    .shift = shift_.data(),
                                    .mean = mean_.data(),
                                    .inverse_deviation = inverse_deviation_.data(),
                                    .dz = store_sum || dz != dy() ? dz : nullptr,
                                    .relu = group().relu};
    double* sums = shared_.backward.of_lane(context().lane);
    kernels().batch_norm_backward_sums(args, shape_, sums);
    sums[shared_.backward.width - 1] = static_cast<double>(context().n * shape_.pixels);

    // These are this lane's gradients of batch norm's parameters; the model sums them over lanes
    // later. The terms of the statistics below need the sums over all lanes.
    float* dgamma = gradient(0);
    float* dbeta = gradient(1);
    const std::int64_t padded = shape_.blocks * kernels().block;
    for (std::int64_t c = 0; c < channels_; ++c) {
      dbeta[c] = static_cast<float>(sums[c]);
      dgamma[c] = static_cast<float>(sums[padded + c]);
    }
    const std::span<const double> total = shared_.backward.total(step.lanes, context().lane);
    if (dx() == nullptr) return;
    const double count = std::max(total.back(), 1.0);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      m_[i] = static_cast<float>(total[i] / count);
      k_[i] = static_cast<float>(double{scale_[i]} * inverse_deviation_[i] *
                                 total[static_cast<std::size_t>(padded + c)] / count);
    }
    const BatchNormInputGradient gradient = {.dz = dz,
                                             .x = x(),
                                             .dx = dx(),
                                             .a = scale_.data(),
                                             .m = m_.data(),
                                             .mean = mean_.data(),
                                             .k = k_.data(),
                                             .scale = mask_again ? scale_.data() : nullptr,
                                             .shift = mask_again ? shift_.data() : nullptr};
    kernels().batch_norm_backward_apply(gradient, shape_);
  }

 private:
  void use_batch_statistics(std::span<const double> total) {
    const double count = std::max(total.back(), 1.0);
    const auto padded = static_cast<std::size_t>(shape_.blocks * kernels().block);
    const bool keeps_state = context().lane == 0 && total.back() > 0.0;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double mean = total[i] / count;
      const double variance = std::max(total[padded + i] / count - mean * mean, 0.0);
      const double inverse = 1.0 / std::sqrt(variance + double{op_.epsilon});
      set_channel(i, gamma_[c], beta_[c], mean, inverse);
      if (!keeps_state) continue;
      const double momentum = op_.momentum;
      const double unbiased = count > 1.0 ? variance * count / (count - 1.0) : variance;
      running_mean_[c] = static_cast<float>((1.0 - momentum) * running_mean_[c] + momentum * mean);
      running_variance_[c] =
          static_cast<float>((1.0 - momentum) * running_variance_[c] + momentum * unbiased);
    }
  }

  void use_running_statistics() {
    for (std::int64_t c = 0; c < channels_; ++c) {
      set_channel(static_cast<std::size_t>(c), gamma_[c], beta_[c], running_mean_[c],
                  1.0 / std::sqrt(double{running_variance_[c]} + double{op_.epsilon}));
    }
  }

  void set_channel(std::size_t c, float gamma, float beta, double mean, double inverse_deviation) {
    const double scale = gamma * inverse_deviation;
    scale_[c] = static_cast<float>(scale);
    shift_[c] = static_cast<float>(beta - mean * scale);
    mean_[c] = static_cast<float>(mean);
    inverse_deviation_[c] = static_cast<float>(inverse_deviation);
  }

  static float* state_of(const GroupContext& context, int index) {
    return context.state.value(static_cast<std::size_t>(index)).f32().data();
  }

  const BatchNormOp op_;
  const std::int64_t channels_;
  const BlockedShape shape_;
  BatchNormShared& shared_;
  const float* const gamma_;
  const float* const beta_;
  float* const running_mean_;
  float* const running_variance_;
  // Batch norm's constants, one value per channel, padded with zeros to whole blocks of channels.
  std::vector<float> scale_;
  std::vector<float> shift_;
  std::vector<float> mean_;
  std::vector<float> inverse_deviation_;
  std::vector<float> m_;
  std::vector<float> k_;
};

}  // namespace

std::unique_ptr<Group> make_group(const GroupSite& site, const BatchNormOp& op) {
  return std::make_unique<BatchNormGroup>(site, op);
}

}  // namespace syncopate
