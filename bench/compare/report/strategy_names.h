// The names of variants for people, at a figure's row and in a sentence.
#pragma once

#include <string>

#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// Returns such as "Sync, 1 backup worker". A variant with flags of its own, or with a label of its
// own, keeps its label.
std::string row_name(const VariantSummary& row);
// Returns the name, with the short name behind it if a reader could not tell that both mean the
// same strategy: "multi-worker-mirrored (all-reduce)".
std::string name_with_short(const VariantSummary& row);
// Returns such as "1 backup worker" or "ssp:3".
std::string short_name(const VariantSummary& row);

// Returns a ratio with two digits, near 1 with three, and never "1.00" for what is not 1: the
// reader sees on which side of 1 it lies.
std::string ratio_text(double ratio);
// Returns seconds with two decimals, and below 0.1 with two digits.
std::string short_seconds(double seconds);

}  // namespace syncopate::bench
