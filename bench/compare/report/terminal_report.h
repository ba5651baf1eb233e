// Prints a comparison in a terminal: its rows, the reasons for doubt and the answer. The answer
// comes last, because the end of the output stays visible.
#pragma once

#include <iosfwd>

#include "bench/compare/report/facts.h"

namespace syncopate::bench {

// Prints the facts about a result. Each line begins with the subject of the fact.
void print_facts(std::ostream& out, const std::vector<Fact>& facts);

// Prints the table of the answer, the conditions, the warnings, the verdict, the accuracies and
// what to do next. These are at most 180 words if there are four rows.
void print_outcome(std::ostream& out, const Outcome& outcome);

// Prints all numbers of the comparison, the tests of all differences between rows, and all facts.
void print_explanation(std::ostream& out, const Outcome& outcome);

}  // namespace syncopate::bench
