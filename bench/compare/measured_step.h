// Implements --step-time of `compare --clusters`: the time of a training step on one device, either
// given or measured on this machine. The step times of the compared clusters are multiples of this
// time.
#pragma once

#include <string>

#include "bench/compare/compare_options.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Reads the value of --step-time: a number of milliseconds, or "measure". Throws UsageError.
StepTime parse_step_time(const std::string& text);

// Sets options.clusters to the clusters that --clusters names, with step times that follow from
// this time. Throws UsageError for a wrong word of --clusters.
void set_step_time(CompareOptions& options, double milliseconds);

// Combines two measurements of a step to one time in milliseconds: their geometric mean, rounded to
// three digits. Throws UsageError if the measurements differ by more than 10 %.
double agreed_step_time(double first_milliseconds, double second_milliseconds);

// Measures a training step with the network and the batch size of the comparison twice, each time
// for a second, and returns agreed_step_time() of the two measurements. Throws what
// agreed_step_time() and calibrate_step() throw.
double measure_step_time(const CompareOptions& options, const DataSplits& data);

}  // namespace syncopate::bench
