// The tables of a comparison, which terminal and page show alike.
#pragma once

#include <cstdint>

#include "bench/compare/report/comparison.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

enum class TableWidth : std::uint8_t { kTerminal, kPage };

// Returns the table of results, with one row per variant. A cell has a value and, in a second line,
// its deviation or interval. The page has more columns than the terminal.
Table results_table(const Comparison& comparison, TableWidth width);

}  // namespace syncopate::bench
