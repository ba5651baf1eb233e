// Makes names of variants for people, for the rows of a figure and for sentences.
#pragma once

#include <string>

#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// Returns the name for a row of a figure, such as "Sync, 1 backup worker". If the variant has flags
// or a label of its own, returns its label.
std::string row_name(const VariantSummary& row);
// Returns the name of the row, followed by the short name in parentheses if the two names have no
// word in common: "multi-worker-mirrored (all-reduce)".
std::string name_with_short(const VariantSummary& row);
// Returns the name for a sentence, such as "1 backup worker" or "ssp:3".
std::string short_name(const VariantSummary& row);

// Returns a ratio with two digits, or near 1 with as many as show that it is not 1, so that a
// reader sees on which side of 1 the ratio lies.
std::string ratio_text(double ratio);
// Returns seconds with two decimals; below 0.1, with two significant digits; from 10 on, with three
// significant digits.
std::string short_seconds(double seconds);

}  // namespace syncopate::bench
