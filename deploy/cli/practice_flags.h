// The flags of training practice, which change how a run trains under every strategy: smoothed
// labels and the like. One function refuses them where they have no meaning.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Adds the group of the flags, which fill in `options`.
void add_practice_flags(FlagSet& flags, TrainOptions& options);

}  // namespace syncopate
