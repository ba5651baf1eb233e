// The options of `syncopate-bench compare`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/cluster.h"
#include "bench/compare/report/paper_claim.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/variant.h"

namespace syncopate::bench {

enum class Clock : std::uint8_t {
  kReal,  // processes on this machine, started by syncopate launch
  // Simulated time. Results are equal on all machines with the same instruction set and version of
  // oneDNN.
  kVirtual,
};

enum class Budget : std::uint8_t {
  kSamples,  // all variants train the same number of samples: --epochs
  kUpdates,  // all variants apply the same number of updates: --updates
  kSeconds,  // all variants train for the same time: --seconds
};

// The time of a training step on one device. The step times of the clusters of --clusters are
// multiples of this time.
struct StepTime {
  double milliseconds = 1.0;
  bool is_measured = false;  // true: measured, by --step-time measure
};

inline constexpr const char* kTuningSplit = "val=0.1";
// The seeds of a comparison are below this number; the seeds of its search are not.
inline constexpr int kMostSeeds = 2000;

// The hyperparameters that are tuned before the comparison. The learning rate is always one of
// them.
struct TuneOptions {
  bool is_on = false;
  bool momentum = false;
  bool batch_size = false;
  bool outer_learning_rate = false;
  // The numbers of steps in a round that are searched for variants such as local-sgd:average:tuned;
  // empty: none.
  std::vector<int> sync_every{};
  // The seed of the first run of each point; the next runs of the point have the next seeds.
  int seed = 10'001;
  // The --split of the tuning runs; "": the validation split of the data, or kTuningSplit.
  std::string split{};
};

struct CompareOptions {
  std::string preset;                // the name of the preset that set these options; "" for none
  std::vector<PaperClaim> claims{};  // of the papers whose experiments the preset repeats
  std::vector<Variant> variants;
  std::vector<std::string> left_out;  // default variants left out as impossible, with reasons
  std::vector<std::string> notes;     // remarks for the user before the first run
  int seeds = 5;                      // runs of each variant
  int first_seed = 1;                 // seeds are first_seed .. first_seed + seeds - 1
  Clock clock = Clock::kReal;
  Budget budget = Budget::kSamples;
  std::int64_t epochs = 2;
  std::int64_t updates = 0;
  double seconds = 0.0;
  std::int64_t batch_size_per_replica = 32;
  // The samples of an update, equal in all variants; nullopt: the samples of a worker's step are
  // equal, batch_size_per_replica.
  std::optional<std::int64_t> batch_size{};
  std::string model = "mnist-cnn";
  std::string data = "digits";
  std::string moved_data{};  // where the data set is now, as for --data; "": at `data`
  SharedTrainFlags shared = parse_shared_train_flags({});  // the flags of train for all runs
  std::optional<double> target_accuracy{};  // empty: derived from the runs (report/comparison.h)
  int evaluations = 20;                     // per run; with kSeconds, per `epochs` epochs
  Cluster cluster;                          // the cluster of all runs; unused with `clusters`
  std::vector<Cluster> clusters;            // of --clusters; all variants run on each of them
  std::vector<std::string> cluster_words;  // the words of --clusters, from which `clusters` is made
  StepTime step_time;  // for `clusters`; if is_measured, with_step_time() sets it
  // The folder of the report. If empty, the report is in the first of the folders comparison,
  // comparison-2, ... that is new, or that has this comparison but not all of its runs. With
  // --clusters, the names of the folders are map, map-2, ...
  std::filesystem::path report;
  std::filesystem::path program;  // path of the program syncopate
  std::filesystem::path cache_dir;
  TuneOptions tune;
  int jobs = 1;  // number of virtual runs that are trained at once
  // The command line, if the processes of this command share the runs (--share-runs); otherwise "".
  std::string shared_command;
  bool replace = false;  // whether runs of another comparison are removed
  bool show_progress = true;
  bool explains = false;  // whether all claims, warnings and conditions are printed

  const std::string& data_here() const noexcept { return moved_data.empty() ? data : moved_data; }
};

}  // namespace syncopate::bench
