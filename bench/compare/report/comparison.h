// A comparison as it is stored in a report folder: the variants in the order of the command line,
// each with its runs. Tables, verdict, plots and CSV files are made from a Comparison.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/machine.h"
#include "bench/compare/report/paper_claim.h"
#include "bench/compare/report/run_result.h"

namespace syncopate::bench {

struct ComparedRun {
  std::string file;                 // the run's file name in comparison.json
  std::optional<RunResult> result;  // nullopt: the run has not begun or was interrupted

  bool is_done() const noexcept { return result && !result->failure; }
  bool has_failed() const noexcept { return result && result->failure; }
};

struct ComparedVariant {
  std::string label;
  int workers = 1;
  std::vector<ComparedRun> runs{};  // one run per seed
  // Whether all workers, except backup workers, contribute to each update.
  bool is_synchronous = true;
  // Whether workers are separate processes, which may run on several machines.
  bool is_distributed = false;
  // Comparison::learning_rate_rule of this variant. This field and the following fields are "",
  // nullopt or 0 if comparison.json does not have them.
  std::string learning_rate_rule{};
  std::optional<double> learning_rate{};         // the given rate, without the factor
  std::optional<double> learning_rate_factor{};  // runs train with learning_rate times this factor
  std::optional<int> threads_per_worker{};
  int servers = 0;
  std::string drops{};         // the gradients that are dropped, in words; "": none
  std::string update_flags{};  // update_flags() of its runs
  // For local updates: the number of steps in a round, 0 for other variants; the outer step, such
  // as "diloco: learning rate 0.7, Nesterov momentum 0.9"; and whether it is not the plain average.
  std::int64_t steps_in_round = 0;
  std::string outer_step{};
  bool has_outer_optimizer = false;
  std::optional<double> outer_learning_rate{};
  double momentum = 0.0;        // 0 with an optimizer without momentum
  std::int64_t batch_size = 0;  // samples of a worker's step; 0 if unknown
  std::string tuning_of{};      // for tuning runs: the label of the variant that they tune
  // The largest learning rate / (1 - momentum), of a search in factors of 2, at which the loss of
  // one worker fell. Nullopt if it was not searched: for rates that were tuned or given.
  std::optional<double> stable_rate{};
  // Whether the values that --tune chose are at a border of what it tried.
  bool is_at_border = false;

  // Returns the results of the runs that are done, in the order of seeds.
  std::vector<const RunResult*> results() const;
};

// The accuracy of a classifier that always predicts the most frequent class.
struct Chance {
  double share = 0.0;  // fraction of the test samples that have this class
  int classes = 0;
  std::int64_t test_samples = 0;
  std::int64_t validation_samples = 0;  // 0: the data have no validation split
  // Returns the limit above which an accuracy is better than chance: `share` plus three standard
  // errors. The number is three because several variants are judged at once.
  double limit() const noexcept;
};

// Without --target-accuracy, the target is this fraction of the baseline's best accuracy, because a
// fixed target would be meaningless for most networks. The baseline is the first row with one
// worker and without an outer optimizer, or the first row if there is no such row. Only rows with a
// result can be the baseline.
inline constexpr double kTargetShare = 0.98;

// Returns whether learning rates with this Comparison::learning_rate_rule follow from a formula,
// and are neither tuned nor chosen for a variant.
bool is_untuned(std::string_view learning_rate_rule);

struct DerivedTarget {
  std::string baseline;        // the label of the baseline
  double best_accuracy = 0.0;  // the median over the baseline's runs of a run's highest accuracy
};

struct Comparison {
  std::string command;  // the command line of the comparison
  std::string model;    // the network; "" if unknown
  std::string data;     // the value of --data; "" if unknown
  std::string budget;   // the budget of every run, in words
  std::string batch;    // the batch that is equal in all variants, such as "32 samples per worker"
  std::string faults;   // the injected faults, as flags of compare; "": none
  std::optional<double> target_accuracy;  // a fraction from 0 to 1; nullopt if unknown
  bool has_virtual_clock = false;
  std::vector<ComparedVariant> variants;
  std::vector<Machine> machines{};   // machines of the runs, in order of time; empty if unknown
  int threads_per_worker = 0;        // 0 if unknown
  std::optional<Chance> chance{};    // empty if unknown
  std::string data_hash{};           // of all samples; "" if unknown
  std::string network_hash{};        // "" if unknown
  std::string network_layers{};      // its operations and parameters in words; "" if unknown
  std::int64_t train_samples = 0;    // of the data set; 0 if unknown
  std::vector<PaperClaim> claims{};  // of the papers whose experiments a preset repeats
  // How the learning rates of the variants follow from the given rate; "" if unknown.
  //   linear, sqrt     proportional to the samples of an update, or to their square root
  //   inverse-workers  divided by the number of workers
  //   none             equal for all variants, whatever the size of their updates
  //   given            chosen for each variant, in braces
  //   tuned            chosen by --tune
  //   preset           chosen by the preset
  //   mixed            the variants have different rules
  std::string learning_rate_rule{};
  // The source of a derived target; nullopt: the target was given.
  std::optional<DerivedTarget> derived_target{};
  std::vector<Comparison> tuning{};  // the rounds of --tune, each with the runs of one round
  double run_wall_seconds = 0.0;     // wall clock time that a run took; 0 if unknown

  bool is_tuned() const noexcept { return !tuning.empty(); }
  // Returns whether messages and servers' updates take no time: no link or costs are simulated.
  bool has_free_messages() const {
    return has_virtual_clock && faults.find("--costs") == std::string::npos &&
           faults.find("--link-") == std::string::npos;
  }
  // Returns the name of the split that was evaluated during training. Evaluations on this split
  // decide when a target was reached; final accuracies are those on the test split.
  std::string_view watched_split() const noexcept {
    return chance && chance->validation_samples > 0 ? "validation" : "test";
  }
};

// Reads DIR/comparison.json and the files of runs that it names, relative to DIR or to DIR/runs. A
// run without a file is pending. Reads DIR/tuning if variants are tuned. Throws FileError naming
// the file.
//   {"command":C, "model":M, "target_accuracy":A, "budget":B, "clock":"real"|"virtual",
//   "trouble":FAULTS,
//    "data_hash":HASH, "network_hash":HASH, "network_layers":TEXT, "train_samples":N,
//    "machines":[{"host":H, "processor":P, "cpus":N, "cores":N, "gpus":[G, ...], "version":V,
//    "commit":C, "instruction_set":I, "onednn":V, "date":D}, ...], "threads_per_worker":N,
//    "chance":{"share":S, "classes":K, "test_samples":N, "validation_samples":N},
//    "papers":[{"source":S, "text":T, "better":L, "worse":L}, ...], "learning_rate_rule":RULE,
//    "variants":[{"label":L, "workers":N, "keeps_step":IS_SYNCHRONOUS, "distributed":B,
//                 "learning_rate_rule":RULE, "learning_rate":R, "learning_rate_factor":F,
//                 "threads_per_worker":N, "servers":N, "drops":TEXT, "update_flags":FLAGS,
//                 "rounds":{"steps":N, "outer_step":TEXT, "has_outer_optimizer":B,
//                           "outer_learning_rate":R},
//                 "stable_rate":R, "runs":["FILE", ...]}, ...]}
// Only clock and variants, and of a variant label, workers, keeps_step, distributed and runs, are
// required, because deploy/slurm/compare.sbatch knows no more. "target_accuracy":null means that
// the target is derived from the runs; it is unknown until a run of the baseline has ended.
Comparison read_comparison(const std::filesystem::path& dir);

// The folder of tuning runs in the folder of a report, and the folder of one round, from 1.
inline constexpr const char* kTuningFolder = "tuning";
std::filesystem::path round_folder(const std::filesystem::path& dir, int round);

// Reads the comparisons of a map of strategies; `dir` has a folder for each cluster. A derived
// target is taken from the first cluster for all clusters, because with an asynchronous baseline
// each cluster would have another target. Throws FileError.
std::vector<Comparison> read_map(const std::filesystem::path& dir,
                                 const std::vector<std::string>& clusters);

// Returns the target as text, such as "95 %"; "the target" if the accuracy is not known yet.
std::string target_text(const Comparison& comparison);

}  // namespace syncopate::bench
