// --step-time of compare: the time of a training step on the clusters of a map, as given or as
// measured on this machine.
#pragma once

#include "bench/compare/compare_options.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Describes the clusters of --clusters with this time of a step. Throws UsageError for a wrong
// word.
void set_step_time(CompareOptions& options, double milliseconds);

// Returns the time that two measurements of a step agree on, in milliseconds: their geometric mean,
// rounded to three digits. Throws UsageError if they differ by more than 10 %.
double agreed_step_time(double first_milliseconds, double second_milliseconds);

// Measures a step of the network and the batch of the comparison twice, for a second each. Throws
// UsageError as agreed_step_time() and calibrate_step() do, DivergenceError.
double measure_step_time(const CompareOptions& options, const DataSplits& data);

}  // namespace syncopate::bench
