// Implements --step-time of `compare`: the time of a training step on the clusters of a map, either
// given or measured on this machine.
#pragma once

#include "bench/compare/compare_options.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Sets options.clusters to the clusters of --clusters with this step time. Throws UsageError for a
// wrong word.
void set_step_time(CompareOptions& options, double milliseconds);

// Combines two measurements of a step to one time in milliseconds: their geometric mean, rounded to
// three digits. Throws UsageError if the measurements differ by more than 10 %.
double agreed_step_time(double first_milliseconds, double second_milliseconds);

// Measures a step with the network and the batch size of the comparison twice, each time for a
// second, and returns agreed_step_time() of the two measurements. Throws what agreed_step_time()
// and calibrate_step() throw.
double measure_step_time(const CompareOptions& options, const DataSplits& data);

}  // namespace syncopate::bench
