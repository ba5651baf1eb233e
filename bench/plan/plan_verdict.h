// Chooses rows of a plan and writes its conclusions as sentences, which follow from the rows alone.
#pragma once

#include <string>
#include <vector>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// The largest mean staleness of a recommended row. Source: the presets in bench/README.md.
// In the preset staleness, asynchronous training at a rate of 0.1 and equal step times ended at
// 97.30 % with 1 worker, 96.85 % with 4 (mean staleness 3), 93.31 % with 8 (7) and 40.32 % with 16
// (15); the preset has no row between 3 and 7. The limit is a little above 3, because a simulated
// mean varies. It is cautious: in the preset stragglers (step times vary), a mean staleness of 7
// ended within a standard deviation of synchronous training.
inline constexpr double kMostStaleness = 3.5;

// Whether the row is above kMostStaleness and was not trained to the target; a row that reached the
// target is judged by its own time.
bool is_too_stale(const PlanRow& row);

// Whether other processes left enough of the CPUs to the measurements of the plan.
bool is_quiet(const Plan& plan);

// What follows from the rows of a plan. A plan that is not quiet concludes nothing.
struct PlanVerdict {
  bool is_quiet = false;
  // The row with the most samples per second, among those that `train` has and that are not one
  // process with more than options.workers_per_machine workers; null if there is none.
  const PlanRow* fastest = nullptr;
  // The row to recommend: it meets the conditions of `fastest` and is not too stale; null if no row
  // qualifies. With time_to_target, a shorter time to target is better. Otherwise more samples per
  // second are better, among the rows with an efficiency of at least one half if there are any. A
  // synchronous strategy within 10 % of the best row is preferred, because its gradients are not
  // stale. The result is the row of the chosen strategy with the fewest workers within 10 % of that
  // strategy's best row.
  const PlanRow* recommended = nullptr;
  // The rows of several machines that train fewer samples per second than one machine.
  std::vector<const PlanRow*> slower_than_one_machine{};
};
// The pointers are to rows of `plan`.
PlanVerdict judge(const PlanOptions& options, const Plan& plan);

// Returns the verdict as lines: the row with the most samples per second, the row to recommend if
// that is another one, where each strategy stops scaling, and what the plan does not cover; or one
// line that says why the plan concludes nothing.
std::string verdict_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
