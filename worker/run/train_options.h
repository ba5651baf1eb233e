// The options of a training run. The command line and `compare` fill in TrainOptions. From the
// table of flags (worker/run/flags) follow the agreement between tasks and the command line of a
// run.
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

// The factor of the learning rate: 1, a power of global batch / reference batch, or 1 / workers.
enum class LearningRateScale : std::uint8_t { kNone, kLinear, kSqrt, kInverseWorkers };
constexpr auto named_values(LearningRateScale /*type*/) {
  return std::array{Named{"none", LearningRateScale::kNone},
                    Named{"linear", LearningRateScale::kLinear},
                    Named{"sqrt", LearningRateScale::kSqrt},
                    Named{"inverse-workers", LearningRateScale::kInverseWorkers}};
}

struct TrainOptions {
  // The values of --model and --data. For a program with its own network and data: the names of
  // both, which are empty until the task has opened and made them.
  std::string model = "mnist-cnn";
  NetworkFlags network;  // changes of `model`: --head and --normalize
  std::string data = "digits";
  ImageOptions image;        // of stored pictures and records
  std::string split;         // the value of --split; empty: none
  StrategyOptions strategy;  // its seed is used for data, initial values and dropout alike
  ClusterSpec cluster;
  bool takes_own_gpus = false;  // --devices cuda: the GPUs are chosen on the host of the task
  bool has_own_cpus = false;    // no other task uses this task's CPUs
  // One process on GPUs, without --replicas: it has a replica for each device.
  bool takes_every_device = false;
  bool shares_devices = false;  // several replicas use one device on purpose
  std::chrono::milliseconds rendezvous_timeout{0};
  std::chrono::milliseconds peer_timeout{0};  // 0: follows from where the tasks run
  std::int64_t global_batch_size = 0;         // 0: batch_size_per_replica times the replicas
  LearningRateScale learning_rate_scale = LearningRateScale::kNone;
  std::int64_t reference_batch_size = 0;  // samples; 0: the batch of one replica
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
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);  // of the servers
  std::filesystem::path record;                                            // empty: no record
};

// The row of the strategy that the options name. Throws UsageError for an unknown name.
inline const StrategyRow& strategy_of(const TrainOptions& options) {
  return row_of(options.strategy);
}
inline bool has_servers(const TrainOptions& options) { return strategy_of(options).has_servers(); }
inline bool has_stages(const TrainOptions& options) { return strategy_of(options).has_stages(); }

// Returns a flag's value as text; "absent" where it has none. name: of a flag in the table of
// train_option_rows().
std::string text_of(const TrainOptions& options, std::string_view name);

// Returns the words behind `syncopate train` that describe this run: the flags that matter in it.
std::vector<std::string> command_line_of(const TrainOptions& options);

// Returns the flags that decide what an update computes from its gradients and its samples, with
// their values, such as "--learning-rate 0.1 --momentum 0.9". Checkpoints record them.
std::string update_flags(const TrainOptions& options);

// Returns what the tasks of a run compare when they meet: values of flags, and the version and the
// instruction set of this program.
std::vector<Agreement> agreements_of(const TrainOptions& options);

}  // namespace syncopate
