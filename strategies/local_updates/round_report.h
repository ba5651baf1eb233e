// What the replicas of a job with rounds tell each other at the end of a round, and how the reports
// are added. Pure: strategies and simulations use the same functions, so they get the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "models/optim/outer_rule.h"
#include "strategies/variable_store.h"

namespace syncopate {

// Whether the end of a round changes values. It does not if one replica takes the mean of its own
// values; then no displacement is computed, because x - (x - y) would round.
bool needs_displacements(const OuterRuleOptions& outer, int replicas) noexcept;

// One replica's part of a round.
struct RoundReport {
  StepReport sum;              // over the steps; the loss is the sum of the sample losses
  std::int64_t steps = 0;      // trained in the round
  std::uint64_t hash = 0;      // of the outer variables after the previous round; 0: none
  float learning_rate = 0.0F;  // of the last step
  // Whether the replica's run ends with the round. Another replica's may end earlier, by a request
  // to stop.
  bool is_last = false;
};

// Adds a step of the replica to its report. `step` has the mean loss of the replica's samples.
void add_step(RoundReport& report, const StepReport& step) noexcept;

// Returns the sums over all replicas. Adds in the order of `reports`, so every replica gets the
// same bits. The loss becomes the sum of the steps' mean losses. Precondition: there is a report.
StepReport sum_of(std::span<const RoundReport> reports) noexcept;

// Returns the learning rate of the round's last step. Precondition: there is a report.
float last_learning_rate(std::span<const RoundReport> reports) noexcept;

// Returns the weight of a replica's displacement: the replica's part of all samples of the round. A
// replica without samples has weight 0. Precondition: some replica has samples.
float weight_of(std::span<const RoundReport> reports, std::size_t replica) noexcept;

// Throws PeerError, which names a replica, if the hashes of the reports differ.
void require_equal_hashes(std::span<const RoundReport> reports);

}  // namespace syncopate
