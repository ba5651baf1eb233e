// A comparison as it is stored in a report folder: the variants in the order of the command line,
// each with its runs. The table, the verdict, the plots and the CSV files are made from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/run_result.h"

namespace syncopate::bench {

struct ComparedRun {
  std::string file;                 // the run's file name in comparison.json
  std::optional<RunResult> result;  // empty: the run has not begun or was interrupted

  bool is_done() const noexcept { return result && !result->failure; }
  bool has_failed() const noexcept { return result && result->failure; }
};

struct ComparedVariant {
  std::string label;
  int workers = 1;
  std::vector<ComparedRun> runs;  // one run per seed
  // The following fields are empty if comparison.json does not have them.
  std::optional<bool> is_synchronous{};  // all workers but backups contribute to each update
  std::optional<bool> is_distributed{};  // workers are processes, which may run on several machines
  std::string learning_rate_rule{};      // as in Comparison, of this variant; "" if unknown
  std::optional<double> learning_rate{};         // the rate as given, without the factor
  std::optional<double> learning_rate_factor{};  // the run trains at learning_rate times this
  std::optional<int> threads_per_worker{};
  int servers = 0;
  std::string optimizer{};                  // name; "" if unknown
  std::optional<bool> depends_on_timing{};  // which gradients an update takes depends on timing
};

// The accuracy of a classifier that always answers with the most frequent class.
struct Chance {
  double share = 0.0;  // the part of the test samples that have this class
  int classes = 0;
  std::int64_t test_samples = 0;
  std::int64_t validation_samples = 0;  // 0: the data have no validation split
  // Returns the limit above which an accuracy is better than chance: `share` plus three standard
  // errors. Three, because several variants are judged at once.
  double limit() const noexcept;
};

// Without --target-accuracy the target is this part of the baseline's best accuracy. The baseline
// is the first row with one worker, else the first row; rows without a result are passed over. A
// fixed target would mean nothing for most networks.
inline constexpr double kTargetShare = 0.98;

struct DerivedTarget {
  std::string baseline;        // the label of the row
  double best_accuracy = 0.0;  // the highest evaluation of each of its runs, their median
};

struct Comparison {
  std::string command;                    // the command line of the comparison
  std::string model;                      // the network; "" if unknown
  std::string budget;                     // what every run may spend, in words
  std::string faults;                     // injected faults, as flags of compare; empty: none
  std::optional<double> target_accuracy;  // a fraction from 0 to 1; empty if unknown
  bool has_virtual_clock = false;
  std::vector<ComparedVariant> variants;
  std::vector<Machine> machines{};  // machines of the runs, in order of time; empty if unknown
  int threads_per_worker = 0;       // 0 if unknown
  std::optional<Chance> chance{};   // empty if unknown
  // How the learning rates of the variants follow from the given rate; "" if unknown.
  //   linear, sqrt     proportional to the samples of an update, or to their square root
  //   inverse-workers  divided by the number of workers
  //   none             equal for all variants, whatever the size of their updates
  //   given            chosen for each variant, in braces
  //   preset           chosen by the preset
  //   mixed            the variants have different rules
  std::string learning_rate_rule{};
  std::optional<DerivedTarget> derived_target{};  // what the target is derived from; empty: given
  double run_wall_seconds = 0.0;  // how long the program took for a run; 0 if unknown

  // Returns the name of the split that was evaluated during training, which decides when a target
  // was reached. Final accuracies are of the test split.
  std::string_view watched_split() const noexcept {
    return chance && chance->validation_samples > 0 ? "validation" : "test";
  }
};

// Reads DIR/comparison.json and the runs it names, relative to DIR or to DIR/runs. A missing file
// is a pending run. Throws FileError naming the file.
//   {"command":C, "model":M, "target_accuracy":A, "budget":B, "clock":"real"|"virtual",
//   "trouble":FAULTS,
//    "machines":[{"host":H, "processor":P, "cpus":N, "gpus":[G, ...], "version":V, "date":D}, ...],
//    "threads_per_worker":N, "chance":{"share":S, "classes":K, "test_samples":N,
//               "validation_samples":N},
//    "learning_rate_rule":RULE,
//    "variants":[{"label":L, "workers":N, "keeps_step":IS_SYNCHRONOUS, "distributed":B,
//                 "learning_rate_rule":RULE, "learning_rate":R, "learning_rate_factor":F,
//                 "threads_per_worker":N, "depends_on_timing":B, "servers":N,
//                 "optimizer":NAME, "runs":["FILE", ...]}, ...]}
// Only clock, variants, label, workers and runs are required. "target_accuracy":null stands for the
// derived target, which is empty until a run has ended.
Comparison read_comparison(const std::filesystem::path& dir);

// Reads the comparisons of a map; `dir` has a folder for each cluster. All get the derived target
// of the first cluster, because asynchronous baselines would give each cluster another. Throws
// FileError.
std::vector<Comparison> read_map(const std::filesystem::path& dir,
                                 const std::vector<std::string>& clusters);

// Returns the target as text, such as "95 %"; "the target" if it is not known yet.
std::string target_text(const Comparison& comparison);

}  // namespace syncopate::bench
