#include "tests/worker/train/round_strategy.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace syncopate {
namespace {

class RoundVariables final : public VariableStore {
 public:
  // step: is set to the number of each step that is committed. steps_of_round: is set to the number
  // of steps that the round has so far.
  RoundVariables(Replica& replica, const StrategyOptions& options, RoundScript& script,
                 std::int64_t& step, std::int64_t& steps_of_round)
      : replica_(replica),
        update_(replica, options),
        script_(script),
        step_(step),
        steps_of_round_(steps_of_round) {}

  void pull(const UpdateStep& update) override {
    update_.begin(update);
    now_ = update;
    if (update.is_last && replica_.index == 0) script_.last_steps.push_back(update.step);
  }
  void wait_values(BucketId /*bucket*/) override {}
  void push(BucketId /*bucket*/, const StepReport& report) override { report_ = report; }
  StepReport commit() override {
    update_.clip_and_update_all();
    StepReport own = report_;
    own.round_steps = 0;
    if (script_.diverges_at.contains(now_.step)) {
      own.scores.loss = std::numeric_limits<double>::quiet_NaN();
    }
    if (const auto bad = script_.bad_in.find(now_.step);
        bad != script_.bad_in.end() && replica_.index == 0) {
      own.scores.num_bad = bad->second;
    }
    if (replica_.index == 0) step_ = now_.step;
    StepReport summand = own;
    summand.scores.loss *= static_cast<double>(own.scores.num_samples);
    sum_ += summand;
    sum_.stops = own.stops;  // a report repeats the requests of earlier steps
    ++steps_;
    const bool ends = steps_ == script_.steps_per_round || now_.is_last || now_.ends_round;
    const StepReport report = ends ? end_round() : own;
    if (replica_.index == 0) steps_of_round_ = steps_;
    return report;
  }
  CommunicationTimes times() const override { return {}; }

 private:
  StepReport end_round() {
    Collective& collective = *replica_.collective;
    std::vector<StepReport> all(static_cast<std::size_t>(collective.size()));
    collective.all_gather(std::as_bytes(std::span(&sum_, 1)),
                          std::as_writable_bytes(std::span(all)));
    StepReport total = all.front();
    for (std::size_t r = 1; r < all.size(); ++r) total += all[r];
    total.round_steps = steps_;
    total.scores.loss *=
        static_cast<double>(steps_) / static_cast<double>(total.scores.num_samples);
    if (collective.size() > 1) {
      average_values(static_cast<float>(sum_.scores.num_samples) /
                     static_cast<float>(total.scores.num_samples));
    }
    if (replica_.index == 0) script_.round_ends.push_back(now_.step);
    sum_ = {};
    steps_ = 0;
    return total;
  }

  void average_values(float weight) {
    const std::span<float> values = replica_.arena->values().f32();
    const std::span<float> sums = replica_.arena->gradients().f32();
    std::ranges::transform(values, sums.begin(), [&](float value) { return weight * value; });
    Collective& collective = *replica_.collective;
    collective.wait(collective.all_reduce(replica_.arena->gradients(), 0));
    std::ranges::copy(sums, values.begin());
    replica_.arena->bump_all_versions();
  }

  Replica& replica_;
  ReplicaUpdate update_;
  RoundScript& script_;
  std::int64_t& step_;
  std::int64_t& steps_of_round_;
  UpdateStep now_;
  StepReport report_;
  StepReport sum_;  // of the steps of the round; its loss is the sum of the samples' losses
  std::int64_t steps_ = 0;
};

}  // namespace

RoundStrategy::RoundStrategy(const StrategyOptions& options, const Graph& graph,
                             RoundScript& script)
    : SynchronousStrategy(
          options, graph,
          {.collectives = make_local_collectives(collective_options(options, graph))}, nullptr),
      script_(script) {
  for (Replica& replica : replicas()) {
    replica.variables =
        std::make_unique<RoundVariables>(replica, options, script, step_, steps_of_round_);
  }
}

void RoundStrategy::note_call() {
  const bool is_round_end = step_ == 0 || std::ranges::count(script_.round_ends, step_) > 0;
  (is_round_end ? script_.calls_at_round_end : script_.calls_in_round).push_back(step_);
}

std::vector<double> RoundStrategy::gather(std::span<const double> mine) {
  note_call();
  return SynchronousStrategy::gather(mine);
}

void RoundStrategy::agree() {
  note_call();
  SynchronousStrategy::agree();
}

Snapshot RoundStrategy::snapshot() {
  note_call();
  return SynchronousStrategy::snapshot();
}

}  // namespace syncopate
