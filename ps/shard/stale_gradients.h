// Rules for single stale gradients under kAsync: Ringmaster, Rennala and ordered momentum
// (ps/shard/consistency.h has their sources). A rule decides from two version numbers whether a
// gradient is dropped, or it is a part of the shard's optimizer. So a shard needs no other state
// for a rule than versions and slots, which are in its snapshots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/optim/optimizer.h"
#include "ps/shard/consistency.h"

namespace syncopate::ps {

// Returns whether the rule drops a gradient of the values of version `read` when the values have
// this version. Both count from 1; `read` is 0 if it is unknown. A gradient of unknown values is
// dropped by every rule that drops any.
bool is_too_stale(const ConsistencyOptions& options, std::uint64_t read,
                  std::uint64_t version) noexcept;

// Returns whether some gradients are dropped, under kAsync or with backup workers.
bool drops_gradients(const ConsistencyOptions& options) noexcept;

// Returns how many gradients kAsync and kSsp collect for one update of the values; 1 except under
// kRennala. Versions count gradients.
constexpr std::int64_t gradients_per_update(const ConsistencyOptions& options) noexcept {
  return options.staleness_rule == StalenessRule::kRennala ? options.rule_number : 1;
}

// The slot of kRennala: the sum of the gradients collected so far. A checkpoint does not contain
// it; the samples of these gradients are then still to be trained.
inline constexpr std::string_view kCollectedSlot = "collected";

// Makes the optimizer of a shard. Its UpdateStep::step is the version of the values, and
// UpdateStep::read the version that the worker read. workers: number of workers in the job. Throws
// UsageError for an unknown optimizer, for a constant out of range, and if the staleness rule does
// not fit the optimizer.
std::unique_ptr<Optimizer> make_shard_optimizer(const OptimizerOptions& optimizer,
                                                const ConsistencyOptions& consistency, int workers);

// Numbers of steps of one worker.
struct DroppedSteps {
  std::int64_t whole = 0;    // steps without an applied gradient
  std::int64_t in_part = 0;  // steps with applied and dropped gradients
};

// Counts steps of one worker with dropped gradients. Each bucket decides by itself, so a step can
// be dropped in part. One thread only.
class DropCounter {
 public:
  // Counts the result of one bucket's push of step `sequence`; a step has a push for each of
  // `buckets` buckets. Results come step by step.
  void add(std::uint64_t sequence, bool is_dropped, std::size_t buckets);
  const DroppedSteps& totals() const noexcept { return totals_; }

 private:
  std::uint64_t sequence_ = 0;
  std::size_t pushes_ = 0;   // of this step
  std::size_t dropped_ = 0;  // of these
  DroppedSteps totals_;
};

// Sets the rule and its number from a text such as "none" or "ringmaster:4". Throws UsageError
// naming `flag` for any other text.
void set_staleness_rule(ConsistencyOptions& options, std::string_view text, std::string_view flag);
std::string staleness_rule_text(const ConsistencyOptions& options);

}  // namespace syncopate::ps
