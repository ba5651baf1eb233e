// Phrases that the verdict's sentences are made of.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// "--service-time exponential:1 --slow worker=7,factor=4" becomes "exponential:1 service times and
// worker 7 slowed 4x". What is not all flags of bench/compare/trouble.h stays as it is.
std::string trouble_words(const std::string& trouble);

// Its name; in quotes where its commas and blanks would run into the sentence's.
std::string named(const VariantSummary& row);
// "97.21 %", of a row that has an accuracy.
std::string accuracy_of(const VariantSummary& row);

// "A", "A and B", "A, B and C".
std::string listed(const std::vector<std::string>& words);

}  // namespace syncopate::bench
