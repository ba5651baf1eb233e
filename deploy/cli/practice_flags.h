// The flags of training practice: smoothed labels, rules that judge evaluations and the like. They
// work under every strategy; one function refuses them where they have no meaning.
#pragma once

#include "deploy/cli/flag_set.h"
#include "worker/run/train_options.h"

namespace syncopate {

inline constexpr int kMostMicroBatches = 65536;  // of --accumulate

// Adds the group of the flags, which fill in `options`.
void add_practice_flags(FlagSet& flags, TrainOptions& options);

// Throws UsageError for a flag that has no meaning in such a run.
void check_practice(const FlagSet& flags, const TrainOptions& options);

}  // namespace syncopate
