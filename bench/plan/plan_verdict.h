// What a plan comes to, in words that follow from its rows and from nothing else.
#pragma once

#include <string>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// The row to use. Where every gradient was computed, by time to target; else by samples per second,
// of the rows whose efficiency is at least a half, if there are any. Strategies of one process
// count up to options.workers_per_machine workers. It is the best of those, or one in step, whose
// gradients are not stale, that comes within 10 % of it; and of that strategy the fewest workers
// within 10 % of its best. None when there are no rows, or no row reached the target.
const PlanRow* recommended(const PlanOptions& options, const Plan& plan);

// Where each strategy stops scaling, what to use, and what was not looked at. Several lines.
std::string verdict_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
