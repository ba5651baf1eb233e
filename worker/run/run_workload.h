// The two workloads that a run may have: what --model and --data name, and a program's own. Both
// apply the flags that change a network or divide data, and check that network and data fit.
#pragma once

#include "worker/run/train_options.h"
#include "worker/run/workload.h"

namespace syncopate {

// Returns the workload that --model and --data name. `options` outlives it.
Workload named_workload(const TrainOptions& options);

// Returns the workload of a program with --split and --label-smoothing applied. Its functions throw
// UsageError when the data are incomplete, have the name of a data set of --data, or do not fit the
// network; and what the program's functions throw. `own` and `options` outlive it.
Workload checked_workload(const Workload& own, const TrainOptions& options);

}  // namespace syncopate
