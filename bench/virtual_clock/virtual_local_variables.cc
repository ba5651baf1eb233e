#include <algorithm>
#include <limits>
#include <utility>

#include "bench/virtual_clock/virtual_variables.h"
#include "models/base/isa.h"
#include "models/optim/outer_rule.h"
#include "models/tensor/sums.h"
#include "strategies/local_updates/round_report.h"
#include "strategies/snapshot.h"

namespace syncopate::bench {
namespace {

// Adds the blocks of all workers in the order of an all-reduce, and stores the sum in every block.
void sum_to_all(std::span<const Tensor> blocks) {
  const SumKernels& kernels = sum_kernels(detect_isa());
  std::vector<float*> ranks;
  for (const Tensor& block : blocks) ranks.push_back(block.f32().data());
  const auto n = static_cast<int>(ranks.size());
  const std::int64_t elements = blocks.front().num_elements();
  for (std::int64_t begin = 0; n > 1 && begin < elements; begin += kBlockElements) {
    kernels.sum_to_all_f32(ranks.data(), n, first_addend(begin, n), begin,
                           std::min(kBlockElements, elements - begin));
  }
}

// The device has the values of the worker that computes; outside a round it has the outer values.
class LocalRounds final : public VirtualVariables {
 public:
  LocalRounds(const Graph& graph, const VirtualPlan& plan, VirtualWorkers& workers)
      : workers_(workers),
        device_(workers.device()),
        options_(plan.strategy.local),
        inner_state_(options_.inner_state),
        outer_options_(outer_options(plan.strategy.local)),
        outer_(make_outer_rule(outer_options_), device_.values().num_elements()),
        needs_displacements_(needs_displacements(outer_options_, workers.count())),
        reports_(static_cast<std::size_t>(workers.count())) {
    const std::int64_t elements = device_.values().num_elements();
    for (int w = 0; w < workers.count(); ++w) {
      inner_.emplace_back(plan.strategy.optimizer, elements);
      if (needs_displacements_) values_.push_back(make_host_tensor({elements}, DType::kF32));
    }
    if (options_.local_from) sums_ = make_summed_variables(graph, plan, workers);
    if (!needs_displacements_) return;
    start_ = make_host_tensor({elements}, DType::kF32);
    start_round();
  }

  double train(const Batch& batch, const UpdateStep& step) override {
    if (sums_gradients(options_, step.epochs)) return sums_->train(batch, step);
    end_sums();
    now_ = step;
    UpdateStep inner = step;
    // Slots that start again at zero need a count that starts again, as in LocalVariables::pull().
    if (inner_state_ == InnerState::kReset) inner.step = reports_.front().steps + 1;
    RoundReport of_step;
    for (int w = 0; w < workers_.count(); ++w) {
      const auto at = static_cast<std::size_t>(w);
      Batch share = workers_.share_of(batch, w);
      share.loss_divisor = std::max<std::int64_t>(share.num_samples, 1);
      if (needs_displacements_) device_.load(values_[at].f32());
      const StepReport own{.scores = workers_.train(w, share)};
      device_.update(inner_[at], inner);
      if (needs_displacements_)
        std::ranges::copy(device_.values().f32(), values_[at].f32().begin());
      add_step(reports_[at], own);
      add_step(of_step, own);
    }
    return of_step.sum.scores.loss /
           static_cast<double>(std::max<std::int64_t>(of_step.sum.scores.num_samples, 1));
  }

  StepReport end_round() override {
    if (sums_ != nullptr) return sums_->end_round();
    const std::vector<RoundReport> all =
        std::exchange(reports_, decltype(reports_)(reports_.size()));
    ++rounds_;
    StepReport total = sum_of(all);
    if (needs_displacements_) {
      sum_displacements(all);
      if (!all_finite(device_.gradients())) {
        total.scores.loss = std::numeric_limits<double>::quiet_NaN();
      }
      device_.load(start_.f32());
      device_.update(outer_, outer_step(outer_options_, rounds_, now_.learning_rate, last_rate_));
      last_rate_ = now_.learning_rate;
      workers_.average_statistics();
      start_round();
    }
    end_inner_state(all);
    return total;
  }

  std::vector<Tensor> tensors() const override {
    if (sums_ != nullptr) return sums_->tensors();
    std::vector<Tensor> tensors{device_.values()};
    for (const Tensor& slot : outer_.tensors()) tensors.push_back(slot);
    return tensors;
  }

 private:
  // Begins the first round after the sums of gradients. Each worker continues with the slots of the
  // sums, unless slots start again at zero.
  void end_sums() {
    if (sums_ == nullptr) return;
    const std::vector<Tensor> slots = sums_->tensors();  // after the values
    for (const OptimizerSlots& own : inner_) {
      for (std::size_t s = 0; inner_state_ != InnerState::kReset && s < own.tensors().size(); ++s) {
        std::ranges::copy(slots[s + 1].f32(), own.tensors()[s].f32().begin());
      }
    }
    sums_.reset();
    if (needs_displacements_) start_round();
  }

  void start_round() {
    const std::span<const float> values = device_.values().f32();
    std::ranges::copy(values, start_.f32().begin());
    for (const Tensor& own : values_) std::ranges::copy(values, own.f32().begin());
  }

  // Leaves the sum of the weighted displacements in the device's gradients.
  void sum_displacements(const std::vector<RoundReport>& all) {
    const std::span<float> gradients = device_.gradients().f32();
    for (std::size_t w = 0; w < values_.size(); ++w) {
      displacement(gradients, start_.f32(), values_[w].f32(), weight_of(all, w));
      std::ranges::copy(gradients, values_[w].f32().begin());
    }
    sum_to_all(values_);
    std::ranges::copy(values_.front().f32(), gradients.begin());
  }

  void end_inner_state(const std::vector<RoundReport>& all) {
    if (inner_state_ == InnerState::kKeep) return;
    for (std::size_t s = 0; s < inner_.front().tensors().size(); ++s) {
      std::vector<Tensor> slots;
      for (std::size_t w = 0; w < inner_.size(); ++w) {
        slots.push_back(inner_[w].tensors()[s]);
        const std::span<float> values = slots.back().f32();
        if (inner_state_ == InnerState::kReset) {
          std::ranges::fill(values, 0.0F);
        } else if (inner_.size() > 1) {
          for (float& value : values) value *= weight_of(all, w);
        }
      }
      if (inner_state_ == InnerState::kAverage) sum_to_all(slots);
    }
  }

  VirtualWorkers& workers_;
  VirtualDevice& device_;
  const LocalUpdateOptions options_;
  const InnerState inner_state_;
  const OuterRuleOptions outer_options_;
  const OptimizerSlots outer_;
  const bool needs_displacements_;
  // inner_, values_ and reports_ have one element per worker. Without displacements, the device has
  // the values of the only worker, and values_ and start_ are empty.
  std::vector<OptimizerSlots> inner_;
  std::vector<Tensor> values_;
  std::vector<RoundReport> reports_;
  std::unique_ptr<VirtualVariables> sums_;  // before the first round; null in rounds
  Tensor start_;                            // the outer values
  UpdateStep now_;
  std::int64_t rounds_ = 0;
  float last_rate_ = 0.0F;  // the inner learning rate of the last step of the last round
};

}  // namespace

std::unique_ptr<VirtualVariables> make_local_variables(const Graph& graph, const VirtualPlan& plan,
                                                       VirtualWorkers& workers) {
  return std::make_unique<LocalRounds>(graph, plan, workers);
}

}  // namespace syncopate::bench
