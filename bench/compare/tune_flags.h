// The flags of `syncopate-bench compare` about the search for hyperparameters.
#pragma once

#include "bench/compare/compare_options.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

// Declares the flags, which are parsed into `tune`.
void declare_tune_flags(FlagSet& flags, TuneOptions& tune);

// Throws UsageError for options that contradict --tune, and for variants that need it.
void check_tune(const CompareOptions& options);

}  // namespace syncopate::bench
