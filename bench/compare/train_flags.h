// The flags of train that a user of compare may give for every run, after `--`.
#pragma once

#include <string>
#include <vector>

#include "worker/run/train_options.h"

namespace syncopate::bench {

struct SharedTrainFlags {
  TrainOptions options;            // without strategy and cluster, which compare sets for each run
  std::vector<std::string> given;  // the names of the flags that the user gave
};

// Parses the words after `--`. Throws UsageError for a flag that train refuses, and for a flag that
// compare sets in each run itself; the error names the flag and the alternative.
SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words);

// Returns why a run with the options `run` ignores one of the given flags; "" if it ignores none.
std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label);

}  // namespace syncopate::bench
