// Makes the tables of a comparison, for terminal and page. A cell has a value and, in a second
// line, its standard deviation.
#pragma once

#include "bench/compare/report/outcome.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Returns the table that is shown with the answer: for each variant, the time to the target, the
// ratio to the shortest time, and the final accuracy. The row with the shortest time comes first.
// Variants with equal weights and times share a row.
Table answer_table(const Outcome& outcome);
// Returns the table with all numbers of each row, in the order of the command line.
Table results_table(const Outcome& outcome);
// Returns the table with all comparisons of two rows. Comparisons of times come before comparisons
// of accuracies.
Table tests_table(const Outcome& outcome);

}  // namespace syncopate::bench
