// The tables of a comparison, which terminal and page show alike. A cell has a value and, in a
// second line, its deviation.
#pragma once

#include "bench/compare/report/outcome.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Returns the table of the answer, the soonest first: the time to the target, times the best, and
// the final accuracy. Rows that are equal stand in one line.
Table answer_table(const Outcome& outcome);
// Returns all numbers of each row, in the order of the command line.
Table results_table(const Outcome& outcome);
// Returns all comparisons of two rows, times before accuracies.
Table tests_table(const Outcome& outcome);

}  // namespace syncopate::bench
