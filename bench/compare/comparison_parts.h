// The parts of a comparison. Each part has the planned runs on one cluster. compare() trains the
// runs.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/comparison_file.h"
#include "bench/compare/data_facts.h"
#include "bench/compare/run_files.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// Opens the data of a comparison. Throws UsageError if the targets have no accuracies to compare.
DataSplits open_classes(const CompareOptions& options);

// The planned runs of a comparison on one cluster, and their files.
struct ComparisonPart {
  CompareOptions options;
  std::vector<RunSpec> runs;
  std::vector<RunHead> heads;
  std::unique_ptr<RunFiles> files;  // null until training begins
};

// Returns one part for each cluster of --clusters; without --clusters, one part. Throws UsageError
// if no run can be trained, if the network does not fit the data, or if the network cannot be cut
// into the stages of a variant's pipeline.
std::vector<ComparisonPart> parts_of(const CompareOptions& options, const DataSplits& data,
                                     const DataFacts& facts);

std::vector<PlannedFolder> folders_of(const std::vector<ComparisonPart>& parts);

// Returns the train options of those runs that can be trained and read the data of the comparison,
// not other data (has_own_data()).
std::vector<TrainOptions> options_on_shared_data(const std::vector<RunSpec>& runs);

// Returns the folder of the report: --report if it is given, otherwise a numbered folder.
std::filesystem::path report_folder(const CompareOptions& options,
                                    const std::vector<ComparisonPart>& parts);

// For --step-time measure: returns the options with a step time and the clusters that follow from
// it. If the comparison continues in a folder, the step time is taken from the folder, so that all
// runs have the same step time. Otherwise the step time is measured. Returns other options
// unchanged.
CompareOptions with_step_time(CompareOptions options, const DataSplits& data,
                              const DataFacts& facts);

}  // namespace syncopate::bench
