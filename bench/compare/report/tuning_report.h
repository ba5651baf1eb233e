// Shows how --tune searched the hyperparameters of a comparison: all points and the chosen ones.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Which hyperparameters beside the learning rate have several values in the search.
struct Searched {
  bool momentum = false;
  bool batch = false;
  bool rounds = false;  // the number of steps in a round
  bool outer_rate = false;
};
Searched searched_in(const Comparison& comparison);

// Returns the chosen values, such as "rates 0.1 (async) and 0.2 (all-reduce)"; "" without --tune.
std::string tuned_values(const Outcome& outcome);

// Returns a row for each variant: the chosen values, whether a value beyond them
// was left untried, and what the search trained. Empty without --tune.
Table tuning_table(const Comparison& comparison);

// Plots the result of each tuning run over its learning rate divided by (1 - momentum): the time to
// the target, where it was reached, and the validation accuracy.
std::vector<NamedPlot> tuning_plots(const Comparison& comparison);

// Returns a sentence about the search, such as "12 runs of each variant, ..."; "" without --tune.
std::string tuning_words(const Comparison& comparison);

}  // namespace syncopate::bench
