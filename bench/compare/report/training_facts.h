// Facts about how the variants of a comparison were trained: learning rates and hyperparameters.
#pragma once

#include <vector>

#include "bench/compare/report/facts.h"
#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

std::vector<Fact> training_facts(const Outcome& outcome);

}  // namespace syncopate::bench
