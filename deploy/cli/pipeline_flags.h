// Checks the flags of `train --strategy pipeline` together. check_cluster() calls it when the tasks
// of the job are known.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Sets options.strategy.stages: one for each task of a job, else what --stages or --cut say. Throws
// UsageError for flags that contradict this number, for flags that stages do not use, and for flags
// of a pipeline under another strategy.
void check_pipeline(const FlagSet& flags, TrainOptions& options);

}  // namespace syncopate
