// Prints a plan as a table for people and as JSON for programs, with its conclusions as sentences.
// Every sentence follows from the rows alone.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// Prints the measurements and assumptions, and one line per strategy and number of workers.
void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan);
std::string json_of(const PlanOptions& options, const Plan& plan);

// Returns the row to recommend; null if no row qualifies. With time_to_target, a shorter time to
// target is better. Otherwise more samples per second are better, among the rows with an efficiency
// of at least one half if there are any. Strategies of one process count only up to
// options.workers_per_machine workers. A synchronous strategy within 10 % of the best row is
// preferred, because its gradients are not stale. The result is the row of the chosen strategy with
// the fewest workers within 10 % of that strategy's best row.
const PlanRow* recommended(const PlanOptions& options, const Plan& plan);

// Returns the conclusions as lines: where each strategy stops scaling, which row to use, and what
// the plan does not cover.
std::string verdict_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
