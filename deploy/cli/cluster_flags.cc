#include "deploy/cli/strategy_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"

namespace syncopate {

void add_cluster_flags(FlagSet& flags, ClusterFlags& cluster) {
  const std::string from_environment = "taken from environment variables";
  flags.begin_group("Cluster");
  flags.add("--rank", &cluster.rank,
            "number of this task, counted from 0; requires --world-size and, if the job has other "
            "tasks, --rendezvous",
            {.default_text = from_environment + ", else 0"});
  flags.add("--world-size", &cluster.world_size, "number of tasks, not counting servers",
            {.default_text = from_environment + ", else 1"});
  flags.add("--rendezvous", &cluster.rendezvous,
            "address at which server 0 listens or, in a job without servers, rank 0. Together with "
            "--rank and --world-size, this flag takes precedence over environment variables. "
            "Without them it replaces only the address from the environment variables; under srun, "
            "HOST without PORT is enough",
            {.value = "HOST:PORT", .default_text = from_environment});
  flags.add("--servers", &cluster.servers,
            "number of parameter servers. Under srun the first M tasks are the servers. In a job "
            "that is started with --rank, --world-size and --rendezvous, start each server with "
            "`syncopate serve`",
            {.value = "M", .default_text = from_environment + ", else 0"});
  flags.add("--nonce", &cluster.nonce,
            "secret that all tasks of the job share, for jobs that are started with --rank, "
            "--world-size and --rendezvous. Other users can see flags, so prefer the environment "
            "variable SYNCOPATE_NONCE",
            {.value = "TEXT", .default_text = from_environment});
  flags.add(
      "--role",
      [&cluster](const std::string& text) {
        cluster.role = text == name(Role::kServer) ? Role::kServer : Role::kWorker;
      },
      "role of this component of a heterogeneous Slurm job; required if the servers are not the "
      "first component",
      {.default_text = from_environment, .choices = {name(Role::kWorker), name(Role::kServer)}});
  // The launcher torch.distributed.launch appends --local-rank; the same rank comes in variables,
  // so the flag is ignored.
  flags.add("--local-rank,--local_rank", [](const std::string& /*rank*/) {}, "", {.hidden = true});
}

CommandOptions parse_cluster(std::span<const std::string> arguments,
                             const Environment& environment) {
  ClusterFlags cluster;
  ClusterOptions options;
  std::string as = "json";
  std::optional<int> port_base;
  std::string sources = "Sources of this description; the first complete source is used:\n";
  for (const ResolverRow& row : resolvers()) {
    sources += fmt::format("  {:<11} {}\n", row.name, row.help);
  }
  FlagSet flags(
      "syncopate cluster",
      "Prints this task's place in its cluster, as the flags or the environment variables describe "
      "it. The field `notes` says why the other sources were not used.",
      sources);
  add_cluster_flags(flags, cluster);
  flags.begin_group("Output");
  flags.add("--as", &as, "format of the output (tf-config: the value of TF_CONFIG)",
            {.choices = {"json", "tf-config"}});
  flags.add("--port-base", &port_base,
            "port of the first task on each host; the host's further tasks have the next ports. "
            "Only with --as tf-config",
            {.value = "PORT",
             .default_text = "the port of the rendezvous",
             .least = 1,
             .most = std::numeric_limits<std::uint16_t>::max()});
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  options.as_tf_config = as == "tf-config";
  options.port_base = port_base.value_or(0);
  flags.require("--port-base", options.as_tf_config, "--as tf-config");
  options.cluster = resolve_cluster(cluster, environment);
  return options;
}

}  // namespace syncopate
