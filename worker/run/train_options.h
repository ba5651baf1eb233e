// The options of a training run. The command line and `compare` fill in TrainOptions. The table of
// flags (worker/run/flags) determines which options the tasks compare when they meet, and the
// command line that describes a run.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"
#include "models/optim/schedule.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/membership.h"
#include "strategies/strategy.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"
#include "worker/run/network_flags.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// The factor by which the learning rate is scaled: 1 for kNone, global batch / reference batch for
// kLinear, sqrt(global batch / reference batch) for kSqrt, and 1 / workers for kInverseWorkers.
enum class LearningRateScale : std::uint8_t { kNone, kLinear, kSqrt, kInverseWorkers };
constexpr auto named_values(LearningRateScale /*type*/) {
  return std::array{Named{"none", LearningRateScale::kNone},
                    Named{"linear", LearningRateScale::kLinear},
                    Named{"sqrt", LearningRateScale::kSqrt},
                    Named{"inverse-workers", LearningRateScale::kInverseWorkers}};
}
// Whether the factor depends on the size of the global batch.
constexpr bool scales_by_batch(LearningRateScale scale) {
  return scale == LearningRateScale::kLinear || scale == LearningRateScale::kSqrt;
}

struct TrainOptions {
  // The values of --model and --data. For a program with its own network and data, these are the
  // names of the network and of the data, and are empty until the task has made the network and
  // opened the data.
  std::string model = "mnist-cnn";
  NetworkFlags network;  // changes of `model`: --head and --normalize
  std::string data = "digits";
  ImageOptions image;        // how stored pictures and records are read
  std::string split;         // the value of --split; empty: none
  StrategyOptions strategy;  // the seed in it is used for data, initial values and dropout
  ClusterSpec cluster;
  bool takes_own_gpus = false;  // --devices cuda: the GPUs are chosen on the host of the task
  bool has_own_cpus = false;    // no other task uses this task's CPUs
  // True for a single process on GPUs without --replicas. Such a process has a replica on each
  // device.
  bool takes_every_device = false;
  // True: several replicas may use one device, because the user asked for it.
  bool shares_devices = false;
  std::chrono::milliseconds rendezvous_timeout{0};
  // 0: the default, which depends on whether all tasks run on one machine
  std::chrono::milliseconds peer_timeout{0};
  std::int64_t global_batch_size = 0;  // 0: batch_size_per_replica times the number of replicas
  LearningRateScale learning_rate_scale = LearningRateScale::kNone;
  std::int64_t reference_batch_size = 0;  // in samples; 0: the batch size of one replica
  InputOptions input;                     // batch size and seed are taken from `strategy`
  float label_smoothing = 0.0F;           // in [0, 1)
  ScheduleOptions schedule;               // total_epochs is set when the data set is open
  TrainLoopOptions loop;
  bool resume = false;
  bool deterministic = false;
  bool hides_progress = false;
  std::filesystem::path init_from;    // empty: the initial values follow from the seed
  std::filesystem::path metrics;      // empty: no metrics are written
  std::filesystem::path tensorboard;  // empty: no event files are written
  std::filesystem::path trace;        // empty: no trace is written
  std::filesystem::path cache_dir;
  // The time between two snapshots that the servers save, --snapshot-every.
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);
  std::filesystem::path record;  // the value of --record; empty: servers do not record pushes
};

// Returns the row of the strategy that the options name. Throws UsageError for an unknown name.
inline const StrategyRow& strategy_of(const TrainOptions& options) {
  return row_of(options.strategy);
}
inline bool has_servers(const TrainOptions& options) { return strategy_of(options).has_servers(); }
// Returns whether workers train in rounds.
inline bool has_rounds(const TrainOptions& options) {
  return strategy_of(options).has_rounds || pushes_displacements(options.strategy.local);
}
inline bool has_stages(const TrainOptions& options) { return strategy_of(options).has_stages(); }

// Returns the value of the flag `name` as text; "absent" if the flag has no value. `name` is in the
// table of train_flags().
std::string text_of(const TrainOptions& options, std::string_view name);

// Returns the arguments of `syncopate train` that describe this run: the flags that have an effect
// in it.
std::vector<std::string> command_line_of(const TrainOptions& options);

// Returns the flags that decide what an update computes from its gradients and its samples, with
// their values, such as "--learning-rate 0.1 --momentum 0.9". Checkpoints record them.
std::string update_flags(const TrainOptions& options);

// Returns what the tasks of a run compare when they meet: values of flags, and the version and the
// instruction set of this program.
std::vector<Agreement> agreements_of(const TrainOptions& options);

}  // namespace syncopate
