// Facts about how the numbers of a report were made: tests, conditions, machines, command.
#pragma once

#include <vector>

#include "bench/compare/report/facts.h"

namespace syncopate::bench {

std::vector<Fact> method_facts(const Outcome& outcome);

}  // namespace syncopate::bench
