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

class BatchNormGroup final : public Group {
 public:
  BatchNormGroup(const GroupSite& site, const BatchNormOp& op)
      : context_(site),
        group_(site.group),
        node_(site.node()),
        op_(op),
        channels_(site.output.channels()),
        shape_{.n = site.n,
               .blocks = (channels_ + site.kernels.block - 1) / site.kernels.block,
               .pixels = site.output.pixels()},
        shared_(*site.shared),
        gamma_(value_of(site, node_.parameters[0])),
        beta_(value_of(site, node_.parameters[1])),
        running_mean_(state_of(site, node_.state.at(0))),
        running_variance_(state_of(site, node_.state.at(1))) {
    const auto padded = static_cast<std::size_t>(shape_.blocks * site.kernels.block);
    for (std::vector<float>* row : {&scale_, &shift_, &mean_, &inverse_deviation_, &m_, &k_}) {
      row->assign(padded, 0.0F);
    }
  }

  GroupNeeds needs() const override {
    GroupNeeds needs;
    if (context_.mode != Mode::kTrain) return needs;
    needs.inputs_in_backward = 1;
    needs.output_in_backward = group_.relu && group_.add;
    needs.takes_two_gradients = true;
    // The addend's gradient is the output gradient, masked by the ReLU, and overwrites it in place.
    // Without an addend, the gradient of batch norm's input overwrites the output gradient.
    needs.gradient_in_place = group_.add ? 1 : 0;
    return needs;
  }

  void bind(const GroupMemory& memory) override { memory_ = memory; }

  void forward(LaneStep& step) override {
    if (context_.mode == Mode::kTrain) {
      double* sums = shared_.forward.of_lane(context_.lane);
      context_.kernels.batch_norm_statistics(memory_.inputs[0], shape_, sums);
      sums[shared_.forward.width - 1] = static_cast<double>(context_.n * shape_.pixels);
      use_batch_statistics(shared_.forward.total(step.lanes, context_.lane));
    } else {
      use_running_statistics();
    }
    context_.kernels.batch_norm_apply(memory_.inputs[0], group_.add ? memory_.inputs[1] : nullptr,
                                      memory_.output, shape_, scale_.data(), shift_.data(),
                                      group_.relu);
  }

  void backward(LaneStep& step) override {
    float* dy = memory_.output_gradients[0];
    const bool two = memory_.output_gradients.size() > 1;
    // If no map is added to batch norm's output, the ReLU's mask can be computed from the input x.
    // Computing the mask twice is faster than storing the masked gradient and reading it again.
    const bool mask_again = group_.relu && !group_.add && !two;
    const bool store_sum = two || (group_.relu && !mask_again);
    float* dz =
        group_.add && memory_.input_gradients[1] != nullptr ? memory_.input_gradients[1] : dy;
    const BatchNormBackward args = {.dy = dy,
                                    .dy2 = two ? memory_.output_gradients[1] : nullptr,
                                    .x = memory_.inputs[0],
                                    .y = group_.add ? memory_.output : nullptr,
                                    .scale = scale_.data(),
                                    .shift = shift_.data(),
                                    .mean = mean_.data(),
                                    .inverse_deviation = inverse_deviation_.data(),
                                    .dz = store_sum || dz != dy ? dz : nullptr,
                                    .relu = group_.relu};
    double* sums = shared_.backward.of_lane(context_.lane);
    context_.kernels.batch_norm_backward_sums(args, shape_, sums);
    sums[shared_.backward.width - 1] = static_cast<double>(context_.n * shape_.pixels);

    // These are this lane's gradients of batch norm's parameters; the model sums them over lanes
    // later. The terms of the statistics below need the sums over all lanes.
    float* dgamma = gradient_of(context_, node_.parameters[0]);
    float* dbeta = gradient_of(context_, node_.parameters[1]);
    const std::int64_t padded = shape_.blocks * context_.kernels.block;
    for (std::int64_t c = 0; c < channels_; ++c) {
      dbeta[c] = static_cast<float>(sums[c]);
      dgamma[c] = static_cast<float>(sums[padded + c]);
    }
    const std::span<const double> total = shared_.backward.total(step.lanes, context_.lane);
    if (memory_.input_gradients[0] == nullptr) return;
    const double count = std::max(total.back(), 1.0);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      m_[i] = static_cast<float>(total[i] / count);
      k_[i] = static_cast<float>(double{scale_[i]} * inverse_deviation_[i] *
                                 total[static_cast<std::size_t>(padded + c)] / count);
    }
    const BatchNormInputGradient gradient = {.dz = dz,
                                             .x = memory_.inputs[0],
                                             .dx = memory_.input_gradients[0],
                                             .a = scale_.data(),
                                             .m = m_.data(),
                                             .mean = mean_.data(),
                                             .k = k_.data(),
                                             .scale = mask_again ? scale_.data() : nullptr,
                                             .shift = mask_again ? shift_.data() : nullptr};
    context_.kernels.batch_norm_backward_apply(gradient, shape_);
  }

 private:
  void use_batch_statistics(std::span<const double> total) {
    const double count = std::max(total.back(), 1.0);
    const auto padded = static_cast<std::size_t>(shape_.blocks * context_.kernels.block);
    const bool keeps_state = context_.lane == 0 && total.back() > 0.0;
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

  const GroupContext context_;
  const FusedGroup& group_;
  const Node& node_;
  const BatchNormOp op_;
  const std::int64_t channels_;
  const BlockedShape shape_;
  BatchNormShared& shared_;
  const float* const gamma_;
  const float* const beta_;
  float* const running_mean_;
  float* const running_variance_;
  GroupMemory memory_;
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
