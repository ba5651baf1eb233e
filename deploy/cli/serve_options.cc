#include "deploy/cli/serve_options.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "deploy/cli/flags.h"
#include "deploy/cli/link_options.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// Who takes part, as far as the user says.
struct ByHand {
  std::optional<int> index;
  std::optional<int> servers;
  std::optional<int> workers;
  std::string rendezvous;
  std::string nonce;
};

ClusterSpec cluster_by_hand(const ByHand& said) {
  ClusterSpec cluster{.source = "flags", .role = Role::kServer};
  cluster.num_servers = said.servers.value_or(1);
  cluster.world_size = said.workers.value_or(1);
  cluster.index = said.index.value_or(0);
  require_between("--servers", cluster.num_servers, 1, 1024);
  require_between("--workers", cluster.world_size, 1, 1024);
  require_between("--index", cluster.index, 0, cluster.num_servers - 1);
  cluster.rendezvous = parse_endpoint(said.rendezvous, "--rendezvous");
  cluster.nonce = said.nonce;
  return cluster;
}

// Numbers and address together say it all; what is missing the environment knows, or nobody.
ClusterSpec cluster_of(const ByHand& said, const Environment& environment) {
  if (said.workers && !said.rendezvous.empty()) return cluster_by_hand(said);
  if (resolve_cluster({}, environment).source == "none") {
    throw UsageError(
        "serve: how many workers, and where do all meet? Give --workers N and --rendezvous "
        "HOST:PORT, or start it as a component of a heterogeneous job of Slurm's: srun syncopate "
        "serve : syncopate train --strategy parameter-server");
  }
  ClusterSpec cluster = resolve_cluster({.world_size = said.workers,
                                         .servers = said.servers,
                                         .rendezvous = said.rendezvous,
                                         .nonce = said.nonce,
                                         .role = Role::kServer,
                                         .wants_servers = true},
                                        environment);
  if (said.index && *said.index != cluster.index) {
    throw UsageError("--index " + std::to_string(*said.index) + ": " + cluster.source + " says " +
                     std::to_string(cluster.index) + "; leave it out");
  }
  if (!cluster.rendezvous) {
    throw UsageError("serve: " + cluster.source +
                     " does not say where all meet; give all tasks --rendezvous HOST:PORT");
  }
  return cluster;
}

}  // namespace

CommandOptions parse_serve_options(std::span<const std::string> arguments,
                                   const Environment& environment) {
  ServeOptions options;
  ByHand by_hand;
  CLI::App app(
      "Serves a part of a job's variables. Under srun it is what the tasks of one component run:\n"
      "srun syncopate serve : syncopate train --strategy parameter-server. In a heterogeneous job\n"
      "(#SBATCH hetjob) no flag is needed, in a normal one --servers M on both sides.\n"
      "By hand: with --workers N and --rendezvous HOST:PORT, and its workers are syncopate train\n"
      "--strategy parameter-server --servers M --world-size N --rank I --rendezvous HOST:PORT.\n"
      "launch and TF_CONFIG make servers of train by themselves.",
      "syncopate serve");
  const std::string group = "Who takes part";
  app.add_option("--index", by_hand.index, "this server's number, from 0")->group(group);
  app.add_option("--servers", by_hand.servers, "how many servers there are; default by hand: 1")
      ->group(group);
  app.add_option("--workers", by_hand.workers, "how many workers there are")->group(group);
  app.add_option("--rendezvous", by_hand.rendezvous,
                 "HOST:PORT of server 0: it listens there, the others call it")
      ->group(group);
  app.add_option(
         "--host", options.host,
         "name or address under which workers reach this server; default by hand: this host's "
         "name")
      ->group(group);
  app.add_option("--port", options.port, "of its data; default: the system chooses")->group(group);
  app.add_option(
         "--nonce", by_hand.nonce,
         "the job's name, the same for all its tasks; with one, whoever is started again finds it")
      ->group(group);
  app.add_option("--rendezvous-timeout", options.rendezvous_timeout,
                 "seconds to wait for the others at the start")
      ->capture_default_str()
      ->group(group);
  app.add_option("--peer-timeout", options.peer_timeout,
                 "seconds until a silent task is missed; default 15, on one machine 5")
      ->group(group);
  LinkFlags link;
  add_link_flags(app, link);
  const std::string kept = "What is kept";
  app.add_option("--threads", options.threads, "that update; default: up to 4 of the CPUs");
  app.add_option("--checkpoint-dir", options.snapshot_dir,
                 "folder for snapshots, from which a server that is started anew goes on")
      ->group(kept);
  app.add_option("--snapshot-every", options.snapshot_every, "seconds between snapshots")
      ->capture_default_str()
      ->group(kept);
  app.add_option("--record", options.record, "FILE for the order in which pushes were applied")
      ->group(kept);
  if (const auto help = parse_flags(app, arguments)) return TextOptions{*help};
  for (const char* flag : {"--checkpoint-dir", "--record"}) require_not_empty(app, flag);
  options.cluster = cluster_of(by_hand, environment);
  require_between("--port", options.port, 0, 65535);
  if (options.threads != 0) require_threads("--threads", options.threads);
  options.link = link_of(link);
  for (const auto& [flag, seconds] : {std::pair{"--rendezvous-timeout", options.rendezvous_timeout},
                                      std::pair{"--peer-timeout", options.peer_timeout},
                                      std::pair{"--snapshot-every", options.snapshot_every}}) {
    if (app.count(flag) > 0 && !(seconds >= 0.1 && seconds <= 1e6)) {
      throw UsageError(std::string(flag) + ": expected seconds, from 0.1 to 1000000");
    }
  }
  return options;
}

}  // namespace syncopate
