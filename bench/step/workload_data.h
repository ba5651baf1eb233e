// Real samples for a benchmark in place of random ones in memory: --data and the flags of train
// that belong to it.
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
  TrainOptions run;  // the data take image and cache_dir from it
};

// Adds --data, --cache-dir, --input-threads and the flags of pictures, and sets their defaults.
void add_workload_data_flags(FlagSet& flags, WorkloadData& data, const Environment& environment);

// Returns the flags that give another process these data; none for random samples.
std::vector<std::string> words_of(const WorkloadData& data);

// Opens the data and returns the workload on their samples; without --data the workload as it is.
// Throws what open_dataset throws, and UsageError when the network does not fit the samples.
Workload with_data(Workload workload, const WorkloadData& data);

}  // namespace syncopate::bench
