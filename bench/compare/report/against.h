// Compares the speeds of the same variants in two comparisons, such as simulated and real runs.
// `report --against` prints the result.
#pragma once

#include <iosfwd>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Prints a line for each variant that both comparisons have: the samples/s and the time to the
// target of `ours` divided by the values of `theirs`, with 95 % confidence intervals. A last
// sentence names the largest error. The target of `ours` is used for both. Throws UsageError if the
// comparisons have other networks, data sets or given targets, or no variant in common.
void print_against(std::ostream& out, const Comparison& ours, Comparison theirs);

}  // namespace syncopate::bench
