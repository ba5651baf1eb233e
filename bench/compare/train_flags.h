// The flags of train that a user of compare may give for every run, behind `--`.
#pragma once

#include <string>
#include <vector>

#include "worker/run/train_options.h"

namespace syncopate::bench {

struct SharedTrainFlags {
  TrainOptions options;            // without a strategy and a cluster, which each run has itself
  std::vector<std::string> given;  // names of the flags that the user gave
};

// Throws UsageError for a flag that train refuses, and for one that compare sets in each run
// itself, naming it and what to give instead.
SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words);

// Why a run with the options `run` ignores one of the given flags; "": it ignores none of them.
std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label);

}  // namespace syncopate::bench
