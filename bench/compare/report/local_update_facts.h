// What a report says of variants that train in rounds (--strategy local-sgd).
#pragma once

#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/facts.h"

namespace syncopate::bench {

// Returns the rounds and outer steps of the variants, and the bytes that the workers of all
// variants send per step. Returns nothing if no variant trains in rounds.
std::vector<Fact> local_update_facts(const Comparison& comparison);

}  // namespace syncopate::bench
