// A strategy that trains in rounds: each replica updates its own values for a number of steps; then
// the replicas take the mean of their values. Tests of the training loop script its reports and
// look at its calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "strategies/replica_update.h"
#include "strategies/synchronous.h"

namespace syncopate {

// What a test scripts before training, and what it finds afterwards.
struct RoundScript {
  std::int64_t steps_per_round = 3;
  std::set<std::int64_t> diverges_at;            // steps with a loss that is not a number
  std::map<std::int64_t, std::int64_t> bad_in;   // bad samples of a step
  std::vector<std::int64_t> steps_of_round;      // what steps_of_round() returns
  std::vector<std::int64_t> round_ends;          // steps
  std::vector<std::int64_t> last_steps;          // steps with UpdateStep::is_last
  std::vector<std::int64_t> calls_in_round;      // steps after which the job was called too early
  std::vector<std::int64_t> calls_at_round_end;  // steps after which the job was called
};

class RoundStrategy final : public SynchronousStrategy {
 public:
  // The optimizer must have no slots. `script` must outlive the strategy.
  RoundStrategy(const StrategyOptions& options, const Graph& graph, RoundScript& script);

  bool is_local(const UpdateStep& /*step*/) const override { return true; }
  std::int64_t steps_left_in_round() const override {
    return script_.steps_per_round - steps_of_round_;
  }
  std::span<const std::int64_t> steps_of_round() const override { return script_.steps_of_round; }
  std::vector<double> gather(std::span<const double> mine) override;
  void agree() override;
  Snapshot snapshot() override;

 private:
  void note_call();
  std::vector<Snapshot::Slot> slots_of(const Replica& /*replica*/) const override { return {}; }

  RoundScript& script_;
  std::int64_t step_ = 0;            // of the first replica
  std::int64_t steps_of_round_ = 0;  // that it has trained
};

}  // namespace syncopate
