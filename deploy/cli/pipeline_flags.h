// Checks that the flags of `train --strategy pipeline` fit together. check_cluster() calls it when
// the tasks of the job are known.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Sets options.strategy.stages: the number of tasks if the job has several, else the number that
// --stages or --cut gives. Throws UsageError for flags that contradict this number, for flags that
// a pipeline does not use, and for flags of a pipeline under another strategy.
void check_pipeline(const FlagSet& flags, TrainOptions& options);

}  // namespace syncopate
