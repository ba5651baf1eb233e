// Prints a comparison in a terminal: its rows, the reasons for doubt and the answer. The answer
// stands last, where it is read.
#pragma once

#include <iosfwd>

#include "bench/compare/report/facts.h"

namespace syncopate::bench {

// Prints each fact with its subject in front.
void print_facts(std::ostream& out, const std::vector<Fact>& facts);

// Prints the table of the answer, setting, warnings, verdict, accuracy and what to do next: at most
// 180 words for four rows.
void print_outcome(std::ostream& out, const Outcome& outcome);

// Prints all numbers, all tests and all facts.
void print_explanation(std::ostream& out, const Outcome& outcome);

}  // namespace syncopate::bench
