// The options of a strategy, filled in by the program from flags and environment.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/enum_names.h"
#include "models/optim/optimizer.h"
#include "models/optim/outer_rule.h"
#include "ps/shard/consistency.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/placement.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/collectives.h"

namespace syncopate {

// What the coordinator must know about the training run to hand out batches and to schedule
// evaluations and checkpoints.
struct JobPlan {
  std::string network;  // name of the network, for messages
  std::int64_t dataset_size = 0;
  // Samples per step: of all workers together in a synchronous job, of one worker in other jobs.
  std::int64_t batch_size = 0;
  std::int64_t total_epochs = 0;
  std::optional<std::int64_t> total_steps;  // replaces total_epochs if set
  std::int64_t eval_every_epochs = 0;
  std::int64_t eval_every_steps = 0;
  std::int64_t checkpoint_every_steps = 0;
  bool writes_checkpoints = false;
  bool saves_evaluated = false;  // write a checkpoint from each snapshot that is evaluated
};

// Options of --strategy parameter-server. Asynchronous central-storage uses `plan` and `agreements`
// too.
struct ParameterServerOptions {
  ps::CompressionOptions compression;
  ps::PartitionRule partition;
  ClusterSpec cluster;
  std::vector<Agreement> agreements;
  JobPlan plan;
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  // Whether the user gave --peer-timeout. Then a server with another timeout is an error.
  bool insists_on_peer_timeout = false;
  // How long a server may be unreachable before a worker fails.
  std::chrono::milliseconds server_timeout = std::chrono::seconds(5);
  // Returns whether this task was asked to stop. Called from any thread.
  std::function<bool()> asked_to_stop;
};

// What happens to the slots of the workers' inner optimizers at the end of a round: each worker
// keeps its own, they become zeros, or all workers get their mean, weighted by samples.
enum class InnerState : std::uint8_t { kKeep, kReset, kAverage };
constexpr auto named_values(InnerState /*type*/) {
  return std::array{Named{"keep", InnerState::kKeep}, Named{"reset", InnerState::kReset},
                    Named{"average", InnerState::kAverage}};
}

// What the workers of an asynchronous job push: the gradient of each batch, or the displacement of
// a round of local updates.
enum class PushKind : std::uint8_t { kGradient, kDisplacement };
constexpr auto named_values(PushKind /*type*/) {
  return std::array{Named{"gradient", PushKind::kGradient},
                    Named{"displacement", PushKind::kDisplacement}};
}

// Options of local updates: of --strategy local-sgd, and of workers that push displacements.
struct LocalUpdateOptions {
  PushKind push = PushKind::kGradient;
  std::int64_t sync_every = 0;    // number of steps in a round; 0: not given
  std::string outer = "average";  // the name of a row of outer_rules()
  // Replace the defaults of that row.
  std::optional<double> outer_learning_rate;
  std::optional<double> outer_momentum;
  bool outer_nesterov = false;
  bool outer_scale_by_rate = false;
  InnerState inner_state = InnerState::kKeep;
  // How many times in a round the replicas of one task take the mean of their values; at the end of
  // the round, all replicas do. 1: only then.
  std::int64_t sync_groups = 1;
  // The epoch at which rounds begin, with a fraction, if the outer step begins with sums of
  // gradients.
  std::optional<double> local_from;
};

// Returns the constants of an outer step with the mean displacement of all workers. Throws
// UsageError for an unknown name.
OuterRuleOptions outer_options(const LocalUpdateOptions& options);
// Returns whether the workers of an asynchronous job push displacements.
constexpr bool pushes_displacements(const LocalUpdateOptions& options) noexcept {
  return options.push == PushKind::kDisplacement;
}
// Returns whether the workers sum their gradients in a step after `epochs` passes over the data.
bool sums_gradients(const LocalUpdateOptions& options, double epochs);

// Returns whether each step makes one update from the gradients of all workers. False for
// asynchronous training, SSP, and synchronous updates with backup workers.
constexpr bool is_synchronous(const ps::ConsistencyOptions& consistency) noexcept {
  return consistency.consistency == ps::Consistency::kSync && consistency.backup_workers == 0;
}

// The samples over which batch normalization computes statistics: the replica's samples (kLocal),
// or all samples of the step (kSync).
enum class BatchNormStatistics : std::uint8_t { kLocal, kSync };
constexpr auto named_values(BatchNormStatistics /*type*/) {
  return std::array{Named{"local", BatchNormStatistics::kLocal},
                    Named{"sync", BatchNormStatistics::kSync}};
}

// Names of strategies for benchmarks and defaults; other code uses the properties of the row.
inline constexpr const char* kOneDevice = "one-device";
inline constexpr const char* kMirrored = "mirrored";
inline constexpr const char* kMultiWorkerMirrored = "multi-worker-mirrored";

struct StrategyOptions {
  std::string name = kOneDevice;  // name of a row of strategies()
  std::uint64_t seed = 1;
  std::int64_t batch_size_per_replica = 64;  // the largest share of one replica in a step
  int micro_batches = 1;                     // a replica computes its share in this number of parts
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  int lanes = 1;
  int replicas = 1;  // number of replicas in this task
  int stages = 2;    // number of stages of the network, for pipeline
  // The nodes behind which --strategy pipeline cuts the network (cut_behind()); empty for stages of
  // equal work.
  std::vector<std::string> cut;
  std::vector<Device> devices{Device{}};  // replica r computes on devices[r % size]
  Precision precision = Precision::kF32;
  bool deterministic = false;
  // CUDA only: the file that records the fastest engine (cuDNN or cuBLAS algorithm) of each
  // operation. If the path is empty, engines are chosen without a measurement.
  std::filesystem::path plan_file;
  BatchNormStatistics batch_norm = BatchNormStatistics::kLocal;
  std::string collective = "auto";
  Transport transport = Transport::kAuto;
  Link link;  // emulated limits of this task's TCP connections; none by default
  OptimizerOptions optimizer;
  double clip_norm = 0.0;  // largest L2 norm of a step's gradients; 0 for no limit
  LocalUpdateOptions local;
  // The tasks of the job; null if this is the only task. Must outlive the strategy.
  Membership* membership = nullptr;
  // Options of the parameter servers, read by parameter-server and central-storage only.
  ps::ConsistencyOptions consistency;
  ParameterServerOptions parameter_server;
};

// Returns the constants of the outer step that shards make with each displacement.
OuterRuleOptions shard_outer_options(const StrategyOptions& options);

// Returns the largest number of samples that a replica computes at once.
constexpr std::int64_t micro_batch_size(const StrategyOptions& options) noexcept {
  return (options.batch_size_per_replica + options.micro_batches - 1) / options.micro_batches;
}

// Returns the backend options of one of this task's replicas.
BackendOptions backend_options(const StrategyOptions& options, int replica);

}  // namespace syncopate
