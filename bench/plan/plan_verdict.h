// Chooses rows of a plan and writes the plan's conclusions as sentences. Choice and sentences
// depend only on the rows.
#pragma once

#include <string>
#include <vector>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// The largest mean staleness with which the plan recommends a row (a strategy with a number of
// workers), unless the row reached the target accuracy in training. Source: the presets `staleness`
// and `stragglers` of `compare`, bench/README.md. In the preset `staleness`, asynchronous training
// with a learning rate of 0.1 and equal step times reached an accuracy of 97.24 % with 1 worker,
// 96.76 % with 4 workers (mean staleness 3), 92.83 % with 8 (mean staleness 7) and 39.07 % with 16
// (mean staleness 15). The preset has no variant with a mean staleness between 3 and 7. The limit
// is a little above 3, because the mean of a simulation varies. The limit is cautious: in the
// preset `stragglers`, with varying step times, the accuracy at a mean staleness of 7 was within
// one standard deviation of the accuracy of synchronous training.
inline constexpr double kMostStaleness = 3.5;

// Returns whether the mean staleness of the row is above kMostStaleness and the row did not reach
// the target in training. A row that reached the target is judged by its time instead.
bool is_too_stale(const PlanRow& row);

// Returns whether other processes left enough CPU time for the measurements of the plan.
bool is_quiet(const Plan& plan);

// The conclusions from the rows of a plan. There are no conclusions if other processes disturbed
// the measurements of the plan (is_quiet()).
struct PlanVerdict {
  bool is_quiet = false;
  // The row with the most samples per second among the rows that `train` can run. Rows of a single
  // process with more than options.workers_per_machine workers are not considered. Null if there is
  // no such row.
  const PlanRow* fastest = nullptr;
  // The row to recommend among the rows that meet the conditions of `fastest` and are not too
  // stale; null if there is none. With time_to_target, the row with the shortest time to the target
  // is the best. Otherwise the row with the most samples per second is the best; if there are rows
  // with an efficiency of at least 0.5, only these compete. The strategy of the best row is chosen,
  // unless a synchronous strategy has a row within 10 % of the best row; then the synchronous
  // strategy is chosen, because its gradients are not stale. `recommended` is the row of the chosen
  // strategy with the fewest workers that is within 10 % of the strategy's best row.
  const PlanRow* recommended = nullptr;
  // The rows with several machines that train fewer samples per second than one machine.
  std::vector<const PlanRow*> slower_than_one_machine{};
};
// Returns the conclusions. Their pointers refer to rows of `plan`.
PlanVerdict judge(const PlanOptions& options, const Plan& plan);

// Returns the conclusions as lines of text: the row with the most samples per second, the
// recommended row if it differs, the number of workers at which each strategy stops scaling, and
// what the plan does not cover. If there are no conclusions, returns one line that says why.
std::string verdict_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
