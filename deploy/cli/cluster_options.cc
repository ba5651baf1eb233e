#include "deploy/cli/cluster_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "deploy/cli/flags.h"

namespace syncopate {

void add_cluster_flags(CLI::App& app, ClusterFlags& flags) {
  const std::string group = "Who takes part";
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--rank", flags.rank, "this task's number, from 0; with the two below")
      ->group(group);
  app.add_option("--world-size", flags.world_size, "how many tasks there are, servers not counted")
      ->group(group);
  app.add_option("--rendezvous", flags.rendezvous,
                 "HOST:PORT where rank 0 listens, or server 0; these three outrank the "
                 "environment, this one alone outranks its address (under srun HOST is enough)")
      ->group(group);
  app.add_option(
         "--servers", flags.servers,
         "how many servers there are: with the three above (start them with syncopate serve), or "
         "under srun, where the first so many tasks serve")
      ->group(group);
  app.add_option("--nonce", flags.nonce, "the job's name, the same for all its tasks; with these")
      ->group(group);
  app.add_option_function<std::string>(
         "--role",
         [&flags](const std::string& text) {
           require_name("--role", text, {name(Role::kWorker), name(Role::kServer)});
           flags.role = text == name(Role::kServer) ? Role::kServer : Role::kWorker;
         },
         "worker | server: what this component of a heterogeneous job is, where the servers are "
         "not "
         "the first one")
      ->group(group);
  // torch.distributed.launch appends it, beside the variables that are read. In no group: hidden.
  app.add_option_function<std::string>("--local-rank,--local_rank", [](const std::string&) {})
      ->group("");
}

CommandOptions parse_cluster_options(std::span<const std::string> arguments,
                                     const Environment& environment) {
  ClusterFlags flags;
  ClusterOptions options;
  std::string as = "json";
  CLI::App app(
      "Prints as JSON what flags and environment say about this task's cluster, and in `notes` why "
      "other sources lost.",
      "syncopate cluster");
  add_cluster_flags(app, flags);
  app.add_option("--as", as, "json | tf-config: what a program that reads TF_CONFIG wants in it")
      ->capture_default_str();
  app.add_option("--port-base", options.port_base,
                 "of --as tf-config: the first task of each host has this port, the next one the "
                 "next; default: as the rendezvous");
  std::string sources = "\nSources, the first one that is complete wins:\n";
  for (const ResolverRow& row : resolvers()) {
    std::string padded(row.name);
    padded.resize(12, ' ');
    sources += "  " + padded + std::string(row.help) + "\n";
  }
  app.footer(sources);
  if (const auto help = parse_flags(app, arguments)) return TextOptions{*help};
  require_name("--as", as, {"json", "tf-config"});
  options.as_tf_config = as == "tf-config";
  if (app.count("--port-base") > 0) {
    require_between("--port-base", options.port_base, 1, std::numeric_limits<std::uint16_t>::max());
  }
  require_used(app, "--port-base", options.as_tf_config, "it belongs to --as tf-config");
  options.cluster = resolve_cluster(flags, environment);
  return options;
}

}  // namespace syncopate
