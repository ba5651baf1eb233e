#include "deploy/cli/train_cluster_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>

#include "deploy/cli/cluster_options.h"
#include "deploy/cli/flags.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "strategies/collective/collectives.h"

namespace syncopate {
namespace {

constexpr int kMostReplicas = 1024;
constexpr double kMostSeconds = 1e6;

Names collective_names() {
  Names names = names_of(collectives());
  names.insert(names.begin(), "auto");
  return names;
}

std::chrono::milliseconds seconds_of(const CLI::App& app, const std::string& flag, double seconds,
                                     std::chrono::milliseconds otherwise) {
  if (app.count(flag) == 0) return otherwise;
  if (!std::isfinite(seconds) || seconds < 0.5 || seconds > kMostSeconds) {
    throw UsageError(flag + " " + shortest_text(seconds) +
                     ": expected seconds, from 0.5 to 1000000");
  }
  return std::chrono::milliseconds(std::llround(1000.0 * seconds));
}

LearningRateScale parse_scale(const std::string& text) {
  if (text == "none") return LearningRateScale::kNone;
  if (text == "linear") return LearningRateScale::kLinear;
  if (text == "sqrt") return LearningRateScale::kSqrt;
  if (text == "inverse-workers") return LearningRateScale::kInverseWorkers;
  throw UsageError("--learning-rate-scale " + text + ": no such rule" +
                   suggest(text, {"none", "linear", "sqrt", "inverse-workers"}));
}

Transport parse_transport(const std::string& text) {
  if (text == "auto") return Transport::kAuto;
  if (text == "tcp") return Transport::kTcp;
  if (text == "shm") return Transport::kShm;
  throw UsageError("--transport " + text + ": no such transport" +
                   suggest(text, {"auto", "tcp", "shm"}));
}

// Launch says whether it bound the task to its part of the machine; mpirun binds, but does not say;
// Slurm says how many CPUs it gave, and a task that may use as many was bound to them.
bool has_cpus_of_its_own(const ClusterSpec& cluster) {
  const std::size_t usable = usable_cpus().size();
  if (cluster.num_cpus > 0) return static_cast<std::size_t>(cluster.num_cpus) == usable;
  if (cluster.source != "Open MPI") return cluster.is_bound;
  return static_cast<long>(usable) < sysconf(_SC_NPROCESSORS_ONLN);
}

std::string joined(const std::vector<std::string>& notes) {
  std::string line;
  for (const std::string& note : notes) line += (line.empty() ? "" : "; ") + note;
  return line;
}

// A strategy of several tasks, and none was found but something that looks like a few.
void require_source(const TrainOptions& options) {
  if (options.cluster.source != "none" || options.cluster.notes.empty()) return;
  throw UsageError("--strategy " + options.strategy.name + ": who takes part? " +
                   joined(options.cluster.notes) +
                   "; to train alone, give --rank 0 --world-size 1");
}

// A job with servers meets at the first of them, and nobody else knows what to do with servers.
void check_servers(const TrainOptions& options) {
  const ClusterSpec& cluster = options.cluster;
  const bool has_servers = options.strategy.name == "parameter-server";
  if (has_servers && cluster.num_servers == 0) {
    throw UsageError(
        "--strategy parameter-server: no servers; start the job with syncopate launch --servers M "
        "--workers N -- train ..., list ps tasks in TF_CONFIG, say --servers M under srun or start "
        "srun SERVERS : WORKERS in a heterogeneous job, or start each with syncopate serve and say "
        "--servers M here");
  }
  if (has_servers && !cluster.rendezvous) {
    throw UsageError("--strategy parameter-server: " + cluster.source +
                     " does not say where server 0 runs; give all tasks --rendezvous HOST:PORT");
  }
  if (!has_servers && (cluster.num_servers > 0 || cluster.role == Role::kServer)) {
    throw UsageError("--strategy " + options.strategy.name + ": " + cluster.source + " lists " +
                     std::to_string(cluster.num_servers) +
                     " parameter servers; choose --strategy parameter-server");
  }
}

bool is_on_gpus(const TrainOptions& options) {
  return options.strategy.devices.front().kind == DeviceKind::kCuda;
}

// What launch starts is there at once, and a role that ends is noticed by launch. Before they say
// hello, though, tasks on GPUs load CUDA's libraries and wake all GPUs; workers of servers have
// their data ready, which the first time is drawn, and their network planned, on GPUs by timing.
std::chrono::seconds default_rendezvous_timeout(const TrainOptions& options) {
  const bool has_servers = options.strategy.name == "parameter-server";
  const bool is_slow = is_on_gpus(options);
  if (has_servers && is_slow) return std::chrono::seconds(300);
  if (options.cluster.source != "launch") return std::chrono::seconds(120);
  return std::chrono::seconds(has_servers || is_slow ? 60 : 5);
}

void check_replicas(const TrainOptions& options, bool share_devices) {
  require_between("--replicas", options.strategy.replicas, 1, kMostReplicas);
  if (options.strategy.name == "one-device" && options.strategy.replicas > 1) {
    throw UsageError("--replicas " + std::to_string(options.strategy.replicas) +
                     ": --strategy one-device has one replica; choose --strategy mirrored");
  }
  if (options.strategy.name == "parameter-server" && options.strategy.replicas > 1) {
    throw UsageError("--replicas " + std::to_string(options.strategy.replicas) +
                     ": a worker of --strategy parameter-server has one replica; start more "
                     "workers");
  }
  if (is_on_gpus(options)) return;  // CPUs only feed them, and one can feed several
  const std::size_t cpus = usable_cpus().size();
  if (static_cast<std::size_t>(options.strategy.replicas) > cpus && !share_devices) {
    throw UsageError("--replicas " + std::to_string(options.strategy.replicas) +
                     ": this process may use " + std::to_string(cpus) +
                     " of the CPUs, and replicas that share one wait for each other; ask for "
                     "fewer, or add --share-devices if that is meant (launch gives each worker its "
                     "part of the CPUs; its --bind none does not)");
  }
}

}  // namespace

void add_train_cluster_flags(CLI::App& app, TrainClusterFlags& flags, TrainOptions& options) {
  const std::string group = "Who takes part";
  app.add_option("--replicas", options.strategy.replicas,
                 "copies of the network in this process; they share its CPUs")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--share-devices", flags.share_devices,
               "meant: replicas on the CPU are more than its CPUs, or tasks have the same GPU")
      ->group(group);
  app.add_option("--collective", options.strategy.collective,
                 help_of("how gradients are summed", collective_names()))
      ->capture_default_str()
      ->group(group);
  app.add_option("--transport", flags.transport,
                 "of ring and servers: auto (shared memory on one host, else tcp) | tcp | shm")
      ->capture_default_str()
      ->group(group);
  app.add_option("--batch-norm", flags.batch_norm,
                 "local: statistics of a replica's share | sync: of the whole batch")
      ->capture_default_str()
      ->group(group);
  add_cluster_flags(app, flags.cluster);
  app.add_option("--rendezvous-timeout", flags.rendezvous_timeout,
                 "seconds to wait for the others at the start; default 120, under launch 5, with "
                 "servers or on GPUs 60; with servers and GPUs always 300")
      ->group(group);
  app.add_option("--peer-timeout", flags.peer_timeout,
                 "seconds from a task's death to the end of all; default 15, on one machine 5")
      ->group(group);
  app.add_option("--service-time", flags.service_time,
                 "sleep in each step, to try uneven machines: constant:MS | exponential:MS | "
                 "lognormal:MS[:SIGMA]")
      ->group(group);
  app.add_option("--slow", flags.slow,
                 "worker=W,factor=F: its service times are so many times as long; repeat for more")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_option("--pause", flags.pauses,
                 "worker=W,at=S,for=S: it sleeps once, in seconds since its first step; repeat for "
                 "more")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  add_link_flags(app, flags.link);
  app.add_option("--learning-rate-scale", flags.learning_rate_scale,
                 "none | linear | sqrt in global batch / reference batch | inverse-workers")
      ->capture_default_str()
      ->group("Optimizer");
  app.add_option("--reference-batch-size", options.reference_batch_size,
                 "what --learning-rate was chosen for; default: one replica's batch")
      ->group("Optimizer");
}

void take_cluster_values(const CLI::App& app, const TrainClusterFlags& flags,
                         TrainOptions& options) {
  options.shares_devices = flags.share_devices;
  require_name("--collective", options.strategy.collective, collective_names());
  options.strategy.transport = parse_transport(flags.transport);
  if (flags.batch_norm != "local" && flags.batch_norm != "sync") {
    throw UsageError("--batch-norm " + flags.batch_norm + ": no such choice" +
                     suggest(flags.batch_norm, {"local", "sync"}));
  }
  options.strategy.batch_norm =
      flags.batch_norm == "sync" ? BatchNormStatistics::kSync : BatchNormStatistics::kLocal;
  options.rendezvous_timeout = seconds_of(app, "--rendezvous-timeout", flags.rendezvous_timeout,
                                          std::chrono::milliseconds(0));
  options.peer_timeout =
      seconds_of(app, "--peer-timeout", flags.peer_timeout, std::chrono::milliseconds(0));
  // 0: shared out once the other tasks on this host are known.
  if (app.count("--threads") == 0) options.strategy.lanes = 0;
  options.learning_rate_scale = parse_scale(flags.learning_rate_scale);
  if (app.count("--reference-batch-size") > 0) {
    require_at_least("--reference-batch-size", options.reference_batch_size, 1);
  }
}

void check_cluster(const CLI::App& app, const TrainClusterFlags& flags,
                   const Environment& environment, TrainOptions& options) {
  check_replicas(options, flags.share_devices);
  const bool has_servers = options.strategy.name == "parameter-server";
  const bool is_one_task = options.strategy.name != "multi-worker-mirrored" && !has_servers;
  const bool sums_on_gpus =
      options.strategy.name == "mirrored" && options.strategy.collective == "nccl";
  if (options.strategy.name != "multi-worker-mirrored" && options.strategy.collective != "auto" &&
      options.strategy.collective != "local" && !sums_on_gpus) {
    throw UsageError("--collective " + options.strategy.collective + ": --strategy " +
                     options.strategy.name +
                     (has_servers ? " has servers in its place" : " is one process") +
                     "; leave it out, or choose multi-worker-mirrored");
  }
  check_link(flags.link, options.strategy);
  if (is_one_task && options.strategy.transport != Transport::kAuto) {
    throw UsageError("--transport " + flags.transport + ": --strategy " + options.strategy.name +
                     " is one process; leave it out, or choose multi-worker-mirrored");
  }
  if (has_servers && flags.batch_norm == "sync") {
    throw UsageError(
        "--batch-norm sync: workers of --strategy parameter-server have no batch in common; leave "
        "it out, or choose multi-worker-mirrored");
  }

  ClusterFlags cluster_flags = flags.cluster;
  cluster_flags.wants_servers = has_servers;
  options.cluster = resolve_cluster(cluster_flags, environment);
  if (!is_one_task) require_source(options);
  check_servers(options);
  if (options.cluster.world_size > 1 && is_one_task) {
    throw UsageError("--strategy " + options.strategy.name + " is one task, but " +
                     std::string(options.cluster.source) + " made this task " +
                     std::to_string(options.cluster.index) + " of " +
                     std::to_string(options.cluster.world_size) +
                     "; choose --strategy multi-worker-mirrored, or start one task");
  }
  if (options.strategy.collective == "mpi" && options.cluster.source == "none") {
    throw UsageError(
        "--collective mpi: MPI did not start this task; start it with mpirun, or with syncopate "
        "launch --workers N -- train --collective mpi ...");
  }
  if (app.count("--rendezvous-timeout") == 0) {
    options.rendezvous_timeout = default_rendezvous_timeout(options);
  }
  options.has_own_cpus = has_cpus_of_its_own(options.cluster);

  if (app.count("--service-time") > 0) {
    options.loop.service_time = parse_service_time(flags.service_time, "--service-time");
    options.loop.service_time.seed = options.strategy.seed;
  }
  require_used(app, "--slow", app.count("--service-time") > 0,
               "it multiplies --service-time; give one");
  const int workers = options.cluster.world_size * options.strategy.replicas;
  const auto require_worker = [&](const char* flag, const std::string& text, int worker) {
    if (worker < workers) return;
    throw UsageError(std::string(flag) + " " + text + ": of " + std::to_string(workers) +
                     (workers == 1 ? " worker" : " workers") + " the last is " +
                     std::to_string(workers - 1));
  };
  for (const std::string& text : flags.slow) {
    options.loop.service_time.slow.push_back(parse_slowness(text));
    require_worker("--slow", text, options.loop.service_time.slow.back().worker);
  }
  for (const std::string& text : flags.pauses) {
    options.loop.service_time.pauses.push_back(parse_pause(text));
    require_worker("--pause", text, options.loop.service_time.pauses.back().worker);
  }
  options.loop.first_worker = options.cluster.index * options.strategy.replicas;
  const bool scales = options.learning_rate_scale == LearningRateScale::kLinear ||
                      options.learning_rate_scale == LearningRateScale::kSqrt;
  require_used(app, "--reference-batch-size", scales,
               "it belongs to --learning-rate-scale linear and sqrt");
  if (app.count("--reference-batch-size") == 0 && scales && options.global_batch_size > 0) {
    throw UsageError(
        "--learning-rate-scale with --batch-size: which batch was --learning-rate chosen for? Give "
        "--reference-batch-size");
  }
}

}  // namespace syncopate
