// The parts of a comparison, one for each cluster, with their planned runs. compare() trains them.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/comparison_file.h"
#include "bench/compare/run_files.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// The runs on one cluster, and their folder.
struct ComparisonPart {
  CompareOptions options;
  std::vector<RunSpec> runs;
  std::vector<RunHead> heads;
  std::unique_ptr<RunFiles> files;  // set when the training begins
};

// Returns one part for each of --clusters, or one for the only cluster. Throws UsageError if no run
// can be trained, or if the network does not fit the data or cannot be cut into the stages.
std::vector<ComparisonPart> parts_of(const CompareOptions& options, const DataSplits& data,
                                     const Chance& chance);

std::vector<PlannedFolder> folders_of(const std::vector<ComparisonPart>& parts);

// Returns the options of the runs that can be trained on the shared data.
std::vector<TrainOptions> options_on_shared_data(const std::vector<RunSpec>& runs);

// Returns --report, or the folder that the comparison takes without it.
std::filesystem::path report_folder(const CompareOptions& options,
                                    const std::vector<ComparisonPart>& parts);

// Returns the options with the step time of --step-time measure. If the comparison goes on in a
// folder, its step time is taken, so that all runs fit together; otherwise it is measured.
CompareOptions with_step_time(CompareOptions options, const DataSplits& data);

}  // namespace syncopate::bench
