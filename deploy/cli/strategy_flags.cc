#include "deploy/cli/strategy_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "deploy/cli/pipeline_flags.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "strategies/collective/collectives.h"
#include "worker/run/run_sizes.h"

namespace syncopate {
namespace {

constexpr int kMostReplicas = 1024;
constexpr int kMostThreads = 1024;
constexpr int kMostBucketMib = 1 << 20;
constexpr double kLeastTimeout = 0.5;  // the least timeout that a flag may set, in seconds
constexpr double kMostTimeout = 1e6;

Names collective_names() {
  Names names = names_of(collectives());
  names.insert(names.begin(), "auto");
  return names;
}

std::chrono::milliseconds timeout_of(double seconds) {
  return std::chrono::milliseconds(std::llround(1000.0 * seconds));
}

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
void check_communication(const StrategyFlags& words, TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  const StrategyRow& row = row_of(strategy);
  // check_pipeline() knows the number of tasks, on which the collective of stages depends.
  if (!row.has_stages() && !row.takes_collective(strategy.collective, 1)) {
    throw UsageError(fmt::format(
        "--collective {}: --strategy {} {}; leave it out, or choose multi-worker-mirrored",
        strategy.collective, strategy.name,
        row.has_servers() ? "sums on its servers" : "is one process"));
  }
  const Transport transport = strategy.transport;
  check_link(words.faults.link, strategy);
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

constexpr int kMostStaleness = 1'000'000;

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
  const bool scales = options.learning_rate_scale == LearningRateScale::kLinear ||
                      options.learning_rate_scale == LearningRateScale::kSqrt;
  const bool is_summed = options.strategy.consistency.consistency == ps::Consistency::kSync;
  if (scales && !is_summed && !flags.has("--reference-batch-size")) {
    throw UsageError(
        "--learning-rate-scale linear and sqrt: under --consistency async and ssp there is no "
        "global batch; give --reference-batch-size, or choose inverse-workers");
  }
}

}  // namespace

void add_strategy_flags(FlagSet& flags, StrategyFlags& words, TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  flags.begin_group("Strategy and devices");
  flags.add("--strategy", &strategy.name, "distribution strategy",
            {.choices = names_of(strategies())});
  add_device_flags(flags, words.devices);
  flags.add("--replicas", &strategy.replicas,
            "copies of the network in this process, which share its CPUs",
            {.default_text = "1; mirrored and central-storage on GPUs: one for each",
             .least = 1,
             .most = kMostReplicas});
  flags.add("--stages", &strategy.stages,
            "parts into which --strategy pipeline cuts the network, of about equal work, each on "
            "CPUs of its own; --accumulate N gives it N micro-batches to keep them busy",
            {.default_text = "2; of a job of several tasks: one for each",
             .least = 1,
             .most = kMostReplicas});
  flags.add("--cut", &strategy.cut,
            "nodes behind which --strategy pipeline cuts the network; syncopate network marks them",
            {.value = "NODE,...", .default_text = "stages of equal work", .separator = ','});
  flags.add("--share-devices", &options.shares_devices,
            "permission for more replicas than CPUs, and for tasks that share a GPU");
  flags.add("--threads", &strategy.lanes,
            "compute threads per replica; two runs are bit-equal only with equal numbers",
            {.default_text = "the CPUs, at most the CPU quota, divided among the replicas",
             .least = 1,
             .most = kMostThreads});
  flags.add("--collective", &strategy.collective, "implementation of the all-reduce",
            {.choices = collective_names()});
  flags.add("--transport", enum_target(strategy.transport),
            "transport of the ring and of servers (auto: shared memory on one host, else tcp)");
  flags.add("--bucket-mb", &words.bucket_mib, "size of a bucket of gradients, in MiB",
            {.value = "MIB", .least = 1, .most = kMostBucketMib});
  flags.add("--batch-norm", enum_target(strategy.batch_norm),
            "samples of the batch statistics: those of a replica, or of the global batch");
  flags.add("--deterministic", &options.deterministic,
            "bit-equal runs on GPUs; synchronous runs on the CPU always are");
}

void add_job_flags(FlagSet& flags, StrategyFlags& words) {
  add_cluster_flags(flags, words.cluster);
  const FlagRules timeout = {.unit = "seconds", .least = kLeastTimeout, .most = kMostTimeout};
  FlagRules rules = timeout;
  rules.default_text = "120, under launch 60; with servers on GPUs 300";
  flags.add("--rendezvous-timeout", &words.rendezvous_timeout,
            "time to wait for the other tasks at the start", rules);
  rules = timeout;
  rules.default_text = "15, on one machine 5";
  flags.add("--peer-timeout", &words.peer_timeout,
            "time from the death of a task to the end of the job; up to three times longer while "
            "tasks start on other machines",
            rules);
}

void take_strategy_flags(const FlagSet& flags, const StrategyFlags& words, TrainOptions& options) {
  take_device_flags(words.devices, options);
  options.takes_every_device = is_on_gpus(options) && !flags.has("--replicas") &&
                               strategy_of(options).has_replicas_of_one_task();
  options.strategy.bucket_bytes = words.bucket_mib << 20;
  options.rendezvous_timeout = timeout_of(words.rendezvous_timeout.value_or(0.0));
  options.peer_timeout = timeout_of(words.peer_timeout.value_or(0.0));
  // lanes == 0: the number of compute threads is chosen once the tasks of this host are known.
  if (!flags.has("--threads")) options.strategy.lanes = 0;
}

void check_cluster(const FlagSet& flags, const StrategyFlags& words, const Environment& environment,
                   TrainOptions& options) {
  StrategyOptions& strategy = options.strategy;
  check_replicas(options);
  check_communication(words, options);
  const bool is_one_task = row_of(strategy).tasks == StrategyRow::Tasks::kOne;

  ClusterFlags cluster = words.cluster;
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
  if (!words.rendezvous_timeout) options.rendezvous_timeout = default_rendezvous_timeout(options);
  options.has_own_cpus = has_cpus_of_its_own(options.cluster);
  check_compute_delays(flags, words.faults, options);
}

void add_consistency_flags(FlagSet& flags, ConsistencyFlags& words, TrainOptions& options) {
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  flags.begin_group("Servers and staleness");
  flags.add("--consistency", enum_target(consistency.consistency),
            "consistency rule of shared variables",
            {.default_text = "async for parameter-server, sync for central-storage"});
  flags.add("--max-staleness", &consistency.max_staleness,
            "steps by which the fastest worker may be ahead of the slowest, with --consistency ssp",
            {.least = 0, .most = kMostStaleness});
  flags.add("--backup-workers", &consistency.backup_workers,
            "gradients of a step that are not waited for and dropped when they arrive, with "
            "--consistency sync",
            {.least = 0});
  flags.add("--staleness-rule", enum_target(consistency.staleness_rule),
            "treatment of stale gradients, with --consistency async and ssp (inverse: rate / "
            "staleness; dc: delay compensation)");
  flags.add("--compress", &words.compress,
            "compression of pushes, with error feedback: none | bf16 (rounds the values that "
            "workers compute with, too) | topk:FRACTION",
            {.value = "CODEC"});
  flags.add("--partition", &words.partition,
            "partition of variables over servers: fixed:N | min-size:BYTES | max-size:BYTES",
            {.value = "RULE", .default_text = "large variables are split"});
}

void take_consistency_flags(const ConsistencyFlags& words, TrainOptions& options) {
  auto& servers = options.strategy.parameter_server;
  servers.compression = ps::parse_compression(words.compress, "--compress");
  if (!words.partition.empty()) {
    servers.partition = ps::parse_partition(words.partition, "--partition");
  }
}

void check_consistency(const FlagSet& flags, TrainOptions& options) {
  const StrategyRow& strategy = strategy_of(options);
  for (const char* flag :
       {"--consistency", "--max-staleness", "--backup-workers", "--staleness-rule"}) {
    flags.require(flag, strategy.shares_variables(),
                  "--strategy parameter-server or central-storage");
  }
  for (const char* flag : {"--compress", "--partition", "--snapshot-every", "--record"}) {
    flags.require(flag, strategy.has_servers(), "--strategy parameter-server");
  }
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  if (!flags.has("--consistency")) consistency.consistency = strategy.consistency;
  const bool is_sync = consistency.consistency == ps::Consistency::kSync;
  flags.require("--max-staleness", consistency.consistency == ps::Consistency::kSsp,
                "--consistency ssp");
  flags.require("--backup-workers", is_sync, "--consistency sync");
  if (is_sync && consistency.staleness_rule != ps::StalenessRule::kNone) {
    throw UsageError(fmt::format(
        "--staleness-rule {}: under --consistency sync no gradient is stale; choose async or ssp",
        name(consistency.staleness_rule)));
  }
  consistency.compensation = ps::compensation_of(consistency.staleness_rule);
  const int workers = options.cluster.world_size;
  if (strategy.has_servers() && consistency.backup_workers >= workers) {
    throw UsageError(
        fmt::format("--backup-workers {}: of {} workers at least one must be waited for",
                    consistency.backup_workers, workers));
  }
  if (!is_synchronous(consistency)) check_asynchronous(flags, options);
}

}  // namespace syncopate
