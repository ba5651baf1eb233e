// Lets a benchmark train on real samples in place of random samples in memory, by --data and the
// flags of train that belong to --data.
#pragma once

#include <string>
#include <vector>

#include "bench/step/workload.h"
#include "deploy/cli/flag_set.h"
#include "models/base/environment.h"
#include "worker/run/train_options.h"

namespace syncopate::bench {

struct WorkloadData {
  std::string flag;  // the value of --data; empty: random samples in memory
  int input_threads = 1;
  TrainOptions run;  // only `image` and `cache_dir` are used
};

// Adds the flags --data, --cache-dir and --input-threads and the flags of pictures to `flags`.
// Their values are stored in `data`.
void add_workload_data_flags(FlagSet& flags, WorkloadData& data, const Environment& environment);

// Returns the command-line flags with which another process reads the same data; empty for random
// samples.
std::vector<std::string> words_of(const WorkloadData& data);

// Opens the data and returns the workload with these samples. Without --data, returns the workload
// unchanged. Throws what open_dataset() throws, and UsageError when the network does not fit the
// samples.
Workload with_data(Workload workload, const WorkloadData& data);

}  // namespace syncopate::bench
