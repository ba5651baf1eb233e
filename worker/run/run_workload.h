// Makes the workload of a run. There are two kinds: the network and the data that --model and
// --data name, and the network and the data of a user's program. Both kinds apply the flags that
// change a network or split data, and check that the network fits the data.
#pragma once

#include "worker/run/train_options.h"
#include "worker/run/workload.h"

namespace syncopate {

// Returns the workload that --model and --data name. `options` outlives the result.
Workload named_workload(const TrainOptions& options);

// Returns the workload of a program with --split and --label-smoothing applied. `own` and `options`
// outlive the result. The functions of the result throw UsageError if the program's data are
// incomplete, have the name of a data set of --data, or do not fit the network. They also throw
// what the functions of `own` throw.
Workload checked_workload(const Workload& own, const TrainOptions& options);

}  // namespace syncopate
