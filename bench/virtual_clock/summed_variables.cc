#include <algorithm>

#include "bench/virtual_clock/job_lines.h"
#include "bench/virtual_clock/outgoing_gradient.h"
#include "bench/virtual_clock/virtual_variables.h"
#include "models/base/errors.h"
#include "ps/shard/shard.h"

namespace syncopate::bench {
namespace {

class SummedVariables final : public VirtualVariables {
 public:
  SummedVariables(const Graph& graph, const VirtualPlan& plan, VirtualWorkers& workers)
      : plan_(plan),
        workers_(workers),
        device_(workers.device()),
        // The device has the shard's own values, which change only between steps.
        shard_(graph.parameter_layout(), plan.placement.buckets,
               make_optimizer(plan.strategy.optimizer), {}, device_.values()) {
    for (int w = 0; w < workers.count(); ++w) {
      shard_.join(w, 1, 0);
      gradients_.emplace_back(plan.strategy.parameter_server.compression, plan.placement);
    }
  }

  // Computes with the values as workers receive them.
  double train(const Batch& batch, const UpdateStep& step) override {
    step_ = step;
    const std::span<float> values = device_.values().f32();
    const bool rounds = plan_.values_format() != ps::ValuesFormat::kF32;
    if (rounds) {
      exact_values_.assign(values.begin(), values.end());
      ps::round_to(plan_.values_format(), values);
      device_.note_written();
    }
    report_ = {};
    for (int w = 0; w < workers_.count(); ++w) {
      report_.scores += workers_.train(w, workers_.share_of(batch, w));
      gradients_[static_cast<std::size_t>(w)].take(device_.gradients(), workers_.count() > 1);
    }
    if (rounds) std::ranges::copy(exact_values_, values.begin());
    return report_.scores.loss;
  }

  StepReport end_round() override {
    for (std::size_t b = 0; b < plan_.placement.buckets.size(); ++b) {
      const auto bucket = static_cast<BucketId>(b);
      const std::uint64_t version = shard_.view(bucket).version;
      for (int w = 0; w < workers_.count(); ++w) {
        const bool takes_part =
            shard_.push({.id = {w, 1, version},
                         .bucket = bucket,
                         .version = version,
                         .learning_rate = step_.learning_rate,
                         .gradient = gradients_[static_cast<std::size_t>(w)].part(bucket),
                         .values = {}});
        check(takes_part, "all workers of a synchronous job take part until the end");
      }
      events_.clear();
      shard_.work(bucket, events_);
      check(shard_.view(bucket).version == version + 1, "all gradients make one update");
    }
    device_.note_written();
    return report_;
  }

  std::vector<std::int64_t> sent_bytes() const override {
    std::vector<std::int64_t> bytes;
    for (std::size_t b = 0; b < plan_.placement.buckets.size(); ++b) {
      bytes.push_back(gradients_.front().bytes(static_cast<BucketId>(b)));
    }
    return bytes;
  }

  std::vector<Tensor> tensors() const override { return tensors_of(shard_); }

 private:
  const VirtualPlan& plan_;
  VirtualWorkers& workers_;
  VirtualDevice& device_;
  ps::Shard shard_;
  std::vector<OutgoingGradient> gradients_;  // one element per worker
  UpdateStep step_;
  StepReport report_;  // of the current step
  std::vector<ps::ShardEvent> events_;
  std::vector<float> exact_values_;  // scratch memory of train()
};

}  // namespace

std::unique_ptr<VirtualVariables> make_summed_variables(const Graph& graph, const VirtualPlan& plan,
                                                        VirtualWorkers& workers) {
  return std::make_unique<SummedVariables>(graph, plan, workers);
}

}  // namespace syncopate::bench
