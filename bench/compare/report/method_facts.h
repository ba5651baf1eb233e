// Facts about how the numbers of a report were made: tests, conditions, machines, command.
#pragma once

#include <vector>

#include "bench/compare/report/facts.h"

namespace syncopate::bench {

// The subject of the fact about the search of --tune.
inline constexpr const char* kTuningFact = "search";

// Returns whether the compute times of --service-time are random, and not measured.
bool has_random_step_times(const Comparison& comparison);

std::vector<Fact> method_facts(const Outcome& outcome);

}  // namespace syncopate::bench
