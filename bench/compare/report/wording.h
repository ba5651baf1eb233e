// Phrases that the verdict's sentences are made of.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/findings.h"

namespace syncopate::bench {

// "--service-time exponential:1 --slow worker=7,factor=4" becomes "exponential:1 service times and
// worker 7 slowed 4x". What is not all flags of bench/harness/fault_injection.h stays as it is.
std::string trouble_words(const std::string& trouble);

// Its name; in quotes where its commas and blanks would run into the sentence's.
std::string named(const VariantSummary& row);
// "97.21 %", of a row that has an accuracy.
std::string accuracy_of(const VariantSummary& row);

// "0.284 s", to the target; virtual ones are called so.
std::string time_of(const VariantSummary& row, const Comparison& comparison);

// How sure a factor is: "95 % interval 1.9x to 2.4x", with few seeds "1.9x to 2.4x with both
// seeds";
// "" where nothing can be said.
std::string interval_words(const TimeRatio& ratio);
// The same of accuracies, in points and without the sign: "95 % interval 1.17 to 1.63".
std::string interval_words(const Difference& difference);

// "One seed is", "Two seeds are": fewer than kEnoughSeeds.
std::string few_seeds_words(int seeds);

// "A", "A and B", "A, B and C".
std::string listed(const std::vector<std::string>& words);

}  // namespace syncopate::bench
