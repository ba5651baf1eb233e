// The tables of a comparison, which terminal and page show alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "bench/compare/report/comparison.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

enum class TableWidth : std::uint8_t { kTerminal, kPage };

// Returns the table of results, with one row per variant. A cell has a value and, in a second line,
// its deviation or interval. The page has more columns than the terminal.
Table results_table(const Comparison& comparison, TableWidth width);

// Returns the table of all claims, times before accuracies; without any, a table without rows.
Table claims_table(const Comparison& comparison);
// The units of its estimates, for a line above it.
inline constexpr std::string_view kClaimUnits =
    "All claims: x is a ratio of geometric mean times to the target, points are of final accuracy.";

}  // namespace syncopate::bench
