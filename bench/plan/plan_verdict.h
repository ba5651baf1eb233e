// Chooses rows of a plan and writes its conclusions as sentences, which follow from the rows alone.
#pragma once

#include <string>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// The largest mean staleness of a recommended row. Source: the presets in bench/README.md.
// Asynchronous training at a rate of 0.1 held its accuracy with 4 workers (mean staleness 3:
// 96.86 % of 97.33), lost some with 8 (mean staleness 7: 93.66 %), and lost most with 8 and
// momentum 0.9 (33.56 %) and with 16 (43.68 %). Nothing was tried between 3 and 7. The limit is a
// little above 3, because a simulated mean varies.
inline constexpr double kMostStaleness = 3.5;

// Whether the row is above kMostStaleness and was not trained; a trained row is judged by its own
// time to the target.
bool is_too_stale(const PlanRow& row);

// Returns the row with the most samples per second, among those that `train` has and that are not
// one process with more than options.workers_per_machine workers; null if there is none.
const PlanRow* fastest(const PlanOptions& options, const Plan& plan);

// Returns the row to recommend, which is one that fastest() may return and is not too stale; null
// if no row qualifies. With time_to_target, a shorter time to target is better. Otherwise more
// samples per second are better, among the rows with an efficiency of at least one half if there
// are any. A synchronous strategy within 10 % of the best row is preferred, because its gradients
// are not stale. The result is the row of the chosen strategy with the fewest workers within 10 %
// of that strategy's best row.
const PlanRow* recommended(const PlanOptions& options, const Plan& plan);

// Returns the conclusions as lines: the row with the most samples per second, the row to recommend
// if that is another one, where each strategy stops scaling, and what the plan does not cover.
std::string verdict_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
