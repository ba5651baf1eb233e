// Tunes the variants of a comparison before the comparison: --tune. Each variant has the same
// number of runs, with other seeds, and the runs are judged on a validation split. The runs are
// trained in rounds. DIR/tuning/K has the runs of round K, in the form of a comparison.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/comparison_parts.h"
#include "bench/compare/data_facts.h"
#include "bench/compare/report/run_result.h"
#include "bench/compare/tuning_search.h"
#include "worker/input/dataset.h"
#include "worker/train/stop_signal.h"

namespace syncopate::bench {

// The searches of all variants of a comparison.
class Tuning {
 public:
  // data: the data that tuning runs read, with a validation split. facts: data_facts_of(data).
  // Throws UsageError for options that cannot be tuned.
  Tuning(const CompareOptions& options, const DataSplits& data, const DataFacts& facts);

  // Returns the number of runs of each variant.
  int runs_of_each() const { return runs_of_search(spaces_.front()); }
  // Plans the next round from the results of the earlier ones. A round without runs means that all
  // searches have ended.
  ComparisonPart next_round();
  // Adds the results of the last planned round. folder: the folder of the round, DIR/tuning/K.
  // Returns false if a run is missing.
  bool add_results(const std::filesystem::path& folder);

  // Returns the options of the comparison, with the best values that the searches found.
  CompareOptions tuned() const;

 private:
  struct Result {
    TuningPoint point;
    RunResult run;
  };
  struct Planned {
    std::size_t variant;
    TuningPoint point;
    std::string file;
  };

  TuningRange batches() const;
  TuningRange rounds() const;
  Variant variant_at(std::size_t variant, const TuningPoint& point) const;
  std::optional<double> target() const;
  std::vector<TuningTrial> trials_of(std::size_t variant) const;

  CompareOptions options_;
  const DataSplits& data_;
  const DataFacts& facts_;
  std::vector<TuningSpace> spaces_;           // by variant
  std::vector<std::vector<Result>> results_;  // by variant
  std::vector<Planned> planned_;              // the runs of the last planned round
};

// Trains the tuning runs that the folder of the report does not have yet. Returns the options of
// the comparison with the tuned values and the folder; nullopt if a signal stopped the training.
// Throws UsageError, FileError.
std::optional<CompareOptions> tune(const CompareOptions& options, const std::string& command,
                                   StopSignal& signals);

// Returns the options of a finished comparison with the values that its search found. Trains
// nothing and changes no file. options.report: the folder of the comparison. Throws UsageError,
// FileError. Throws std::runtime_error if the runs of the search are not those that these options
// and the data lead to.
CompareOptions tuned_before(const CompareOptions& options);

}  // namespace syncopate::bench
