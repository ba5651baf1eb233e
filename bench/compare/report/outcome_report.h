// What a terminal shows of a comparison: its rows, the reasons for doubt and the answer, which
// stands last, where it is read.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/compare/report/outcome.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Returns the table of the rows, the soonest first: the time to the target, times the best, and the
// final accuracy.
Table outcome_table(const Outcome& outcome);

// Prints table, setting, warnings, verdict, accuracy and what to do next: at most 180 words for
// four rows.
void print_outcome(std::ostream& out, const Outcome& outcome);

// Prints text in lines of at most 80 characters, the first after `head`, the others below it.
void print_paragraph(std::ostream& out, const std::string& text, const std::string& head = "");

}  // namespace syncopate::bench
