// The table of a comparison: one row per variant. The terminal and the page show the same cells.
#pragma once

#include <iosfwd>
#include <string_view>

#include "bench/compare/report/comparison.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// plus_minus: what to print between a mean and its deviation.
Table make_table(const Comparison& comparison, std::string_view plus_minus);

// Prints the table in aligned columns for a terminal of 100 characters, with long labels on several
// lines, and the machines below it.
void print_table(std::ostream& out, const Comparison& comparison);

}  // namespace syncopate::bench
