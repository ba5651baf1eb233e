// Facts about what the answer of a comparison depends on.
#pragma once

#include <string>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

// The following functions return a text without a final full stop; "" if there is nothing to say.

// Returns what the difference between the best row and the next one consists of: the speed of
// training, and the samples that a row needs to the target.
std::string parts_of_answer(const Outcome& outcome);
// Returns how many runs of each row fell below the target again, and the answer if all later
// evaluations had to be at the target.
std::string spikes_words(const Outcome& outcome);
// Returns the answers if the target were 1 to 3 points higher, below the accuracies of all rows.
std::string other_targets_words(const Outcome& outcome);

}  // namespace syncopate::bench
