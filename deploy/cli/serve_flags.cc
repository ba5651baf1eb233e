// Parses the command line of `syncopate serve`.
#include <fmt/format.h>

#include <optional>

#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate {
namespace {

constexpr double kMostServeTasks = 1024;
constexpr double kLeastServeSeconds = 0.1;
constexpr double kMostServeSeconds = 1e6;

// JobFlags holds what the flags say about the job.
struct JobFlags {
  std::optional<int> index;
  std::optional<int> servers;
  std::optional<int> workers;
  std::string rendezvous;
  std::string nonce;
};

ClusterSpec cluster_from_flags(const JobFlags& flags, const Environment& environment) {
  ClusterSpec cluster{.source = "flags", .role = Role::kServer};
  cluster.num_servers = flags.servers.value_or(1);
  cluster.world_size = flags.workers.value_or(1);
  cluster.index = flags.index.value_or(0);
  if (cluster.index >= cluster.num_servers) {
    throw UsageError(fmt::format("--index {}: expected a whole number from 0 to {}", cluster.index,
                                 cluster.num_servers - 1));
  }
  cluster.rendezvous.endpoint = parse_endpoint(flags.rendezvous, "--rendezvous");
  cluster.nonce = given_nonce(flags.nonce, environment);
  return cluster;
}

// Resolves the cluster. The flags --workers and --rendezvous together are complete; if one is
// missing, the environment must complete them.
ClusterSpec cluster_of(const JobFlags& flags, const Environment& environment) {
  if (flags.workers && !flags.rendezvous.empty()) return cluster_from_flags(flags, environment);
  if (resolve_cluster({}, environment).source == "none") {
    throw UsageError(
        "serve: the number of workers and the rendezvous are missing; give --workers N and "
        "--rendezvous HOST:PORT, or start it as a component of a heterogeneous job of Slurm: srun "
        "syncopate serve : syncopate train --strategy parameter-server");
  }
  ClusterSpec cluster = resolve_cluster({.world_size = flags.workers,
                                         .servers = flags.servers,
                                         .rendezvous = flags.rendezvous,
                                         .nonce = flags.nonce,
                                         .role = Role::kServer,
                                         .wants_servers = true},
                                        environment);
  if (flags.index && *flags.index != cluster.index) {
    throw UsageError(fmt::format("--index {}: {} gives {}; leave it out", *flags.index,
                                 cluster.source, cluster.index));
  }
  if (!cluster.rendezvous.endpoint) {
    throw UsageError(
        fmt::format("serve: {} does not name the rendezvous; give all tasks --rendezvous HOST:PORT",
                    cluster.source));
  }
  return cluster;
}

void add_serve_flags(FlagSet& flags, JobFlags& job, ServeOptions& options, TrainOptions& run) {
  const auto seconds = [](std::string default_text) {
    return FlagRules{.unit = "seconds",
                     .default_text = std::move(default_text),
                     .least = kLeastServeSeconds,
                     .most = kMostServeSeconds};
  };
  flags.begin_group("Cluster");
  flags.add("--index", &job.index, "number of this server, counted from 0",
            {.default_text = "0", .least = 0});
  flags.add("--servers", &job.servers, "number of servers of the job",
            {.default_text = "1", .least = 1, .most = kMostServeTasks});
  flags.add("--workers", &job.workers, "number of workers of the job",
            {.least = 1, .most = kMostServeTasks});
  flags.add("--rendezvous", &job.rendezvous, "address at which server 0 listens",
            {.value = "HOST:PORT"});
  flags.add("--host", &options.host, "host name or address at which workers connect to this server",
            {.value = "HOST", .default_text = "this host's name"});
  flags.add("--port", &options.port, "port on which workers exchange data with this server",
            {.value = "PORT",
             .default_text = "chosen by the operating system",
             .least = 0,
             .most = 65535});
  flags.add("--nonce", &job.nonce,
            "secret that all tasks of the job share. Other users can see flags, so prefer the "
            "environment variable SYNCOPATE_NONCE",
            {.value = "TEXT"});
  flags.add("--rendezvous-timeout", &options.rendezvous_timeout,
            "longest time that this server waits at the start until all tasks have connected",
            seconds(""));
  flags.add("--peer-timeout", &options.peer_timeout,
            "a task counts as dead if it sends no message for 0.7 * SECONDS, or for 2.1 * SECONDS "
            "while the task is starting",
            seconds("15; 5 if all tasks are on one machine"));
  flags.begin_group("Servers and staleness");
  flags.add("--threads", &options.threads, "number of threads that apply updates",
            {.default_text = "the number of CPUs, at most 4", .least = 1, .most = kMostServeTasks});
  flags.begin_group("Checkpoints and output");
  flags.add("--checkpoint-dir", &options.snapshot_dir,
            "folder for the server's snapshots; a restarted server resumes from its last snapshot",
            {.value = "DIR", .default_text = "no snapshots are written"});
  flags.add("--snapshot-every", &options.snapshot_every,
            "time between two snapshots of the variables", seconds(""));
  flags.add("--record", &options.record,
            "file in which the server records the order of the pushes that it applies",
            {.value = "FILE", .default_text = "none"});
  flags.begin_group("Fault injection");
  add_flags_of_train(flags, run, {"--link-delay", "--link-rate"});
}

}  // namespace

CommandOptions parse_serve(std::span<const std::string> arguments, const Environment& environment) {
  ServeOptions options;
  JobFlags job;
  TrainOptions run;  // a server uses only the link's flags
  FlagSet flags(
      "syncopate serve", "Runs one parameter server, which holds a part of a job's variables.",
      "To start a job by hand, give each server and each worker the same --rendezvous:\n"
      "  syncopate serve --servers M --index I --workers N --rendezvous HOST:PORT\n"
      "  syncopate train --strategy parameter-server --servers M --world-size N --rank R \\\n"
      "      --rendezvous HOST:PORT\n"
      "Under Slurm, start servers and workers by one srun in a heterogeneous job (#SBATCH "
      "hetjob):\n"
      "  srun syncopate serve : syncopate train --strategy parameter-server\n"
      "In a job that is not heterogeneous, add --servers M to both `serve` and `train` in this "
      "line.\n"
      "`syncopate serve` is not needed if `syncopate launch --servers M` starts the servers, or\n"
      "if TF_CONFIG lists the servers as tasks of the type ps.");
  add_serve_flags(flags, job, options, run);
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  options.cluster = cluster_of(job, environment);
  options.link = run.strategy.link;
  return options;
}

}  // namespace syncopate
