#include "deploy/cli/strategy_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/collective/collectives.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

// True if this task is bound to CPUs of its own. launch reports whether it bound the task to its
// part of the machine. mpirun binds tasks and does not report it. Slurm reports how many CPUs it
// gave, and a task that may use exactly this number is bound.
bool has_cpus_of_its_own(const ClusterSpec& cluster) {
  const std::size_t usable = usable_cpus().size();
  if (cluster.num_cpus > 0) return static_cast<std::size_t>(cluster.num_cpus) == usable;
  if (cluster.source != "Open MPI") return cluster.is_bound;
  return static_cast<long>(usable) < sysconf(_SC_NPROCESSORS_ONLN);
}

// Refuses a strategy of several tasks if the only descriptions of the cluster that were found
// (flags or environment variables) are incomplete.
void require_source(const TrainOptions& options) {
  if (options.cluster.source != "none" || options.cluster.notes.empty()) return;
  throw UsageError(
      fmt::format("--strategy {}: no complete description of the cluster was found: {}; to train "
                  "alone, give --rank 0 --world-size 1",
                  options.strategy.name, fmt::join(options.cluster.notes, "; ")));
}

// Checks that servers and --strategy parameter-server are used together.
void check_servers(const TrainOptions& options) {
  const ClusterSpec& cluster = options.cluster;
  const bool wants_servers = has_servers(options);
  if (wants_servers && cluster.num_servers == 0 && cluster.source == "launch") {
    throw UsageError(
        "--strategy parameter-server: the job has no servers; give launch --servers 1 or more");
  }
  if (wants_servers && cluster.num_servers == 0) {
    throw UsageError(
        "--strategy parameter-server: no servers; start the job with syncopate launch --servers M "
        "--workers N -- train ..., list ps tasks in TF_CONFIG, give --servers M under srun, start "
        "srun SERVERS : WORKERS in a heterogeneous job, or start each with syncopate serve and "
        "give --servers M here");
  }
  if (wants_servers && !cluster.rendezvous.endpoint) {
    throw UsageError(fmt::format(
        "--strategy parameter-server: {} does not give the address of server 0; give all tasks "
        "--rendezvous HOST:PORT",
        cluster.source));
  }
  if (!wants_servers && (cluster.num_servers > 0 || cluster.role == Role::kServer)) {
    throw UsageError(fmt::format(
        "--strategy {}: {} lists {} parameter servers; choose --strategy parameter-server",
        options.strategy.name, cluster.source, cluster.num_servers));
  }
}

bool is_on_gpus(const TrainOptions& options) {
  return options.strategy.devices.front().kind == DeviceKind::kCuda;
}

// Returns the default of --rendezvous-timeout. Launch starts all roles at once and notices a role
// that ends, so the timeout is for one that hangs; on a busy machine a task may take many seconds
// until it answers. Tasks of servers on GPUs need minutes before they meet: they initialise all
// GPUs, open their data, which is rendered the first time, and plan their network by measurement.
std::chrono::seconds default_rendezvous_timeout(const TrainOptions& options) {
  if (has_servers(options) && is_on_gpus(options)) return std::chrono::seconds(300);
  return std::chrono::seconds(options.cluster.source == "launch" ? 60 : 120);
}

void check_replicas(const TrainOptions& options) {
  const int replicas = options.strategy.replicas;
  if (const StrategyRow& strategy = strategy_of(options);
      replicas > 1 && !strategy.has_replicas()) {
    throw UsageError(fmt::format("--replicas {}: {}", replicas, strategy.one_replica));
  }
  if (is_on_gpus(options)) return;  // replicas on several GPUs can share one CPU
  const CpuLimits cpus = cpu_limits();
  if (replicas > cpus.usable() && !options.shares_devices) {
    throw UsageError(fmt::format(
        "--replicas {}: this process may use {}, and replicas that share one wait for "
        "each other; give fewer, or add --share-devices if that is meant (launch gives each worker "
        "its part of the CPUs; its --bind none does not)",
        replicas, describe(cpus)));
  }
}

// Refuses flags of communication that the chosen strategy or collective does not use.
void check_communication(const FlagSet& flags, TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  const StrategyRow& row = row_of(strategy);
  // check_pipeline() knows the number of tasks, on which the collective of stages depends.
  if (!row.has_stages() && !row.takes_collective(strategy.collective, 1)) {
    throw UsageError(fmt::format(
        "--collective {}: --strategy {} {}; leave it out, or choose multi-worker-mirrored",
        strategy.collective, strategy.name,
        row.has_servers()                       ? "sums on its servers"
        : row.tasks == StrategyRow::Tasks::kOne ? "is one process"
                                                : "does not take it"));
  }
  const Transport transport = strategy.transport;
  check_link(flags, strategy);
  if (row.tasks == StrategyRow::Tasks::kOne && transport != Transport::kAuto) {
    throw UsageError(
        fmt::format("--transport {}: --strategy {} is one process; leave it out, or "
                    "choose multi-worker-mirrored",
                    name(transport), strategy.name));
  }
  if (row.has_servers() && strategy.batch_norm == BatchNormStatistics::kSync) {
    throw UsageError(
        "--batch-norm sync: workers of --strategy parameter-server have no batch in common; leave "
        "it out, or choose multi-worker-mirrored");
  }
}

// Refuses flags that require synchronous workers, because only these have a global batch.
void check_asynchronous(const FlagSet& flags, const TrainOptions& options) {
  if (options.deterministic) {
    throw UsageError(
        "--deterministic requires synchronous workers: otherwise timing decides the order of "
        "updates; leave it out, or choose --consistency sync without --backup-workers");
  }
  if (options.global_batch_size > 0) {
    throw UsageError(
        "--batch-size requires synchronous workers: under --consistency async and ssp each worker "
        "applies its own batch; give --batch-size-per-replica");
  }
  const ps::ConsistencyOptions& consistency = options.strategy.consistency;
  const auto local = local_updates_of(options);
  const bool divides =
      local && pushes_displacements(*local) &&
      *local->outer_learning_rate < outer_options(options.strategy.local).learning_rate;
  if (divides && options.learning_rate_scale == LearningRateScale::kInverseWorkers) {
    throw UsageError(
        "--learning-rate-scale inverse-workers: with --push displacement the outer step divides "
        "already; leave the flag out, or give --outer-learning-rate");
  }
  const bool has_one_batch = consistency.consistency != ps::Consistency::kSync &&
                             ps::gradients_per_update(consistency) == 1;
  if (scales_by_batch(options.learning_rate_scale) && has_one_batch &&
      !flags.has("--reference-batch-size")) {
    throw UsageError(
        "--learning-rate-scale linear and sqrt: under --consistency async and ssp there is no "
        "global batch; give --reference-batch-size, or choose inverse-workers");
  }
}

}  // namespace

void check_cluster(const FlagSet& flags, ClusterFlags cluster, const Environment& environment,
                   TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  check_replicas(options);
  check_communication(flags, options);
  const bool is_one_task = row_of(strategy).tasks == StrategyRow::Tasks::kOne;

  cluster.wants_servers = has_servers(options);
  options.cluster = resolve_cluster(cluster, environment);
  if (!is_one_task) require_source(options);
  check_pipeline(flags, options);
  check_servers(options);
  if (options.cluster.world_size > 1 && is_one_task) {
    throw UsageError(fmt::format(
        "--strategy {} is one task, but {} made this task {} of {}; choose --strategy "
        "multi-worker-mirrored, or start one task",
        strategy.name, options.cluster.source, options.cluster.index, options.cluster.world_size));
  }
  if (strategy.collective == "mpi" && options.cluster.source == "none") {
    throw UsageError(
        "--collective mpi: MPI did not start this task; start it with mpirun, or with syncopate "
        "launch --workers N -- train --collective mpi ...");
  }
  if (!flags.has("--rendezvous-timeout")) {
    options.rendezvous_timeout = default_rendezvous_timeout(options);
  }
  options.has_own_cpus = has_cpus_of_its_own(options.cluster);
}

void check_consistency(const FlagSet& flags, TrainOptions& options) {
  const StrategyRow& strategy = strategy_of(options);
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  const bool is_sync = consistency.consistency == ps::Consistency::kSync;
  if (is_sync && consistency.staleness_rule != ps::StalenessRule::kNone) {
    throw UsageError(fmt::format(
        "--staleness-rule {}: under --consistency sync no gradient is stale; choose async or ssp",
        name(consistency.staleness_rule)));
  }
  if (consistency.consistency == ps::Consistency::kQuorum && !has_rounds(options)) {
    throw UsageError(
        "--consistency quorum is for workers that train in rounds; give --push displacement "
        "--sync-every N, or choose sync with --backup-workers");
  }
  consistency.compensation = ps::compensation_of(consistency.staleness_rule);
  if (consistency.staleness_rule != ps::StalenessRule::kNone) {
    ps::check_consistency(consistency);
    (void)ps::make_shard_optimizer(options.strategy.optimizer, consistency, 1);
  }
  const int workers = options.cluster.world_size;
  if (strategy.has_servers() && consistency.backup_workers >= workers) {
    throw UsageError(
        fmt::format("--backup-workers {}: of {} workers at least one must be waited for",
                    consistency.backup_workers, workers));
  }
  if (consistency.consistency == ps::Consistency::kQuorum && options.cluster.num_servers > 1) {
    throw UsageError(
        "--consistency quorum: one server decides which displacements make an update, but the job "
        "has several; give --servers 1");
  }
  if (consistency.quorum > count_workers(options)) {
    throw UsageError(fmt::format("--quorum {}: the job has {} workers; give at most as many",
                                 consistency.quorum, count_workers(options)));
  }
  if (!is_synchronous(consistency)) check_asynchronous(flags, options);
  if (has_rounds(options)) check_local_updates(options.strategy);
}

}  // namespace syncopate
