// Phrases that the sentences of the verdict and its remarks share.
#pragma once

#include <string>

#include "bench/compare/report/evidence.h"

namespace syncopate::bench {

// The name of the row, in quotes if it has commas or blanks.
std::string named(const VariantSummary& row);
// "97.21 %"; the row has an accuracy.
std::string accuracy_of(const VariantSummary& row);
// The time to the target: "0.284 s" or "0.284 virtual s".
std::string time_of(const VariantSummary& row, const Comparison& comparison);

// The uncertainty of a factor: "95 % interval 1.9x to 2.4x", with few seeds "1.9x to 2.4x with the
// two seeds".
std::string interval_words(const TimeRatio& ratio);
// The uncertainty of a difference of accuracies, in points: "95 % interval 1.17 to 1.63".
std::string interval_words(const Difference& difference);

}  // namespace syncopate::bench
