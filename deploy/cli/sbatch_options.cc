#include "deploy/cli/sbatch_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "deploy/cli/flags.h"
#include "deploy/cli/train_options.h"
#include "deploy/slurm/job_script.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kMostNodes = 65536;
constexpr int kMostTasks = 1024;
constexpr int kScriptsCpus = 2;  // that the scripts ask for per task

Names script_names() {
  Names names;
  for (const JobScriptRow& row : job_scripts()) names.push_back(row.name);
  return names;
}

std::string script_for(const std::string& strategy) {
  if (strategy == "multi-worker-mirrored") return "multi_node";
  if (strategy == "parameter-server") return "parameter_server_het";
  return "one_node";
}

// As far as it was said; what was not is one.
int tasks_of(const SbatchOptions& options) {
  return std::max(1, options.nodes) * std::max(1, options.tasks_per_node);
}

// Of the comparison, whose script has some nodes of its own.
int compared_tasks(const SbatchOptions& options) {
  constexpr int kNodes = 3;
  return (options.nodes > 0 ? options.nodes : kNodes) * std::max(1, options.tasks_per_node);
}

// A word of a #SBATCH line, which has no quotes.
void require_plain_word(std::string_view flag, const std::string& value) {
  const bool is_plain =
      std::ranges::all_of(value, [](unsigned char c) { return std::isgraph(c) != 0 && c != '#'; });
  if (is_plain) return;
  throw UsageError(std::string(flag) + " '" + value + "': expected one word as sbatch takes it");
}

// What the tasks will be told, read as worker 0 would, so that what it refuses is said now. The
// number of CPUs is that of another machine.
TrainOptions check_train_flags(const SbatchOptions& options) {
  std::vector<std::string> arguments = options.train_flags;
  arguments.insert(arguments.begin(), {"--strategy", options.strategy, "--share-devices"});
  const int workers = options.script == "one_node" ? 1 : tasks_of(options);
  const Environment worker({{"SYNCOPATE_ROLE", "worker"},
                            {"SYNCOPATE_INDEX", "0"},
                            {"SYNCOPATE_WORKERS", std::to_string(workers)},
                            {"SYNCOPATE_SERVERS", std::to_string(options.servers)},
                            {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});
  const CommandOptions parsed = parse_train_options(arguments, worker);
  if (std::holds_alternative<TextOptions>(parsed)) {
    throw UsageError("--help behind the two dashes: see syncopate train --help");
  }
  const auto& train = std::get<TrainOptions>(parsed);
  if (train.strategy.name != options.strategy) {
    throw UsageError(
        "--strategy " + train.strategy.name +
        " behind the two dashes: give it in front of them, it decides what is started");
  }
  if (train.cluster.source == "flags") {
    throw UsageError(
        "--rank, --world-size and --rendezvous: Slurm tells each task who it is; "
        "leave them out");
  }
  const bool shares_process = options.script == "one_node" && options.strategy != "one-device";
  const bool says_replicas = train.strategy.replicas > 1 ||
                             std::ranges::any_of(options.train_flags, [](const std::string& flag) {
                               return flag.starts_with("--replicas");
                             });
  if (shares_process && !says_replicas) {
    throw UsageError("--strategy " + options.strategy +
                     ": how many replicas? Give --replicas behind two dashes, such as -- "
                     "--replicas 2");
  }
  return train;
}

// A task that has fewer CPUs than replicas is refused by train, once the job has waited and
// started.
void fit_cpus(const TrainOptions& train, SbatchOptions& options) {
  // As a flag of the command line: that of `train` was set so as not to count this machine's CPUs.
  const bool shares = std::ranges::count(options.train_flags, "--share-devices") > 0;
  const int replicas = train.strategy.replicas;
  const bool is_on_gpus = train.strategy.devices.front().kind == DeviceKind::kCuda;
  if (shares) return;
  if (options.cpus_per_task == 0) {
    const int wanted = replicas * std::max(1, train.strategy.lanes);
    if (wanted > kScriptsCpus) options.cpus_per_task = wanted;
  } else if (options.cpus_per_task < replicas && !is_on_gpus) {
    throw UsageError("--cpus-per-task " + std::to_string(options.cpus_per_task) +
                     " for --replicas " + std::to_string(replicas) +
                     ": replicas that share a CPU wait for each other; give one to each, or "
                     "--share-devices behind the two dashes if that is meant");
  }
}

// Which script, and with how many tasks of which kind.
void check_strategy(const CLI::App& app, SbatchOptions& options) {
  if (options.strategy.empty() == options.script.empty()) {
    throw UsageError(options.script.empty()
                         ? "train under which strategy? Give --strategy, or --script"
                         : "--script and --strategy: leave one of them out");
  }
  if (options.script.empty()) {
    require_name("--strategy", options.strategy, names_of(strategies()));
    options.script = script_for(options.strategy);
  }
  require_name("--script", options.script, script_names());
  const bool has_servers = options.script == "parameter_server_het" || options.script == "compare";
  require_used(app, "--servers", has_servers, "it belongs to --strategy parameter-server");
  const bool is_heterogeneous = options.script == "parameter_server_het";
  for (const char* flag : {"--server-nodes", "--server-partition"}) {
    require_used(app, flag, is_heterogeneous, "it belongs to --strategy parameter-server");
  }
  if (is_heterogeneous && options.servers == 0) options.servers = options.server_nodes;
  if (is_heterogeneous && options.servers % options.server_nodes != 0) {
    throw UsageError("--servers " + std::to_string(options.servers) + " on --server-nodes " +
                     std::to_string(options.server_nodes) +
                     ": every node gets as many; choose a multiple");
  }
  const int tasks = compared_tasks(options);
  if (options.script == "compare" && options.servers >= tasks) {
    throw UsageError("--servers " + std::to_string(options.servers) + " of " +
                     std::to_string(tasks) +
                     " tasks: nobody is left to train; give more --nodes or --tasks-per-node");
  }
  const bool is_one_task = options.script == "one_node" || options.script == "build";
  if (is_one_task && tasks_of(options) > 1) {
    throw UsageError((options.strategy.empty() ? "--script " + options.script
                                               : "--strategy " + options.strategy) +
                     " is one process, but --nodes and --tasks-per-node ask for " +
                     std::to_string(tasks_of(options)) +
                     "; choose --strategy multi-worker-mirrored or parameter-server");
  }
}

void check_sizes(const CLI::App& app, SbatchOptions& options) {
  for (const auto& [flag, value, most] :
       {std::tuple{"--nodes", options.nodes, kMostNodes},
        std::tuple{"--tasks-per-node", options.tasks_per_node, kMostTasks},
        std::tuple{"--cpus-per-task", options.cpus_per_task, kMostTasks},
        std::tuple{"--servers", options.servers, kMostTasks},
        std::tuple{"--server-nodes", options.server_nodes, kMostNodes}}) {
    if (app.count(flag) > 0) require_between(flag, value, 1, most);
  }
  for (const auto& [flag, value] :
       {std::pair{"--time", options.time}, std::pair{"--partition", options.partition},
        std::pair{"--server-partition", options.server_partition},
        std::pair{"--account", options.account}, std::pair{"--job-name", options.job_name}}) {
    require_plain_word(flag, value);
  }
  for (const char* flag : {"--container", "--program"}) require_not_empty(app, flag);
  require_used(app, "--container-flags", !options.container.empty(), "it belongs to --container");
}

void add_flags(CLI::App& app, SbatchOptions& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--strategy", options.strategy, "as train's: which script it takes follows");
  app.add_option("--script", options.script, help_of("one of the scripts instead", script_names()));
  const std::string size = "How much";
  app.add_option(
         "--nodes", options.nodes,
         "nodes; with servers those of the workers; default of this and the next: the script's")
      ->group(size);
  app.add_option("--tasks-per-node", options.tasks_per_node, "processes on each")->group(size);
  app.add_option(
         "--cpus-per-task", options.cpus_per_task,
         "of each process; default: the script's, or more if --replicas or --threads behind "
         "the two dashes want it")
      ->group(size);
  app.add_option("--servers", options.servers, "parameter servers; default: one per server node")
      ->group(size);
  app.add_option("--server-nodes", options.server_nodes, "nodes for them")
      ->capture_default_str()
      ->group(size);
  app.add_option("--time", options.time, "of the job, as sbatch takes it; default: the script's")
      ->group(size);
  const std::string where = "Where";
  app.add_option("--partition", options.partition, "of Slurm")->group(where);
  app.add_option("--server-partition", options.server_partition,
                 "for the servers; default: --partition")
      ->group(where);
  app.add_option("--account", options.account, "that is charged")->group(where);
  app.add_option("--job-name", options.job_name, "default: the script's")->group(where);
  app.add_option("--container", options.container, "an Apptainer image that has the program")
      ->group(where);
  app.add_option("--container-flags", options.container_flags,
                 "of apptainer exec, such as \"--nv --bind /scratch\"; the folder it is submitted "
                 "from is there without")
      ->group(where);
  app.add_option("--program", options.program, "default: this one; with --container: syncopate")
      ->group(where);
  app.add_flag("--print", options.print, "write the script to standard output, submit nothing");
  app.footer(
      "\nFlags of train stand behind two dashes. The script keeps runs below the folder it is "
      "submitted from, ends with\n"
      "a checkpoint 60 s before its time is over, goes back into the queue and resumes.\n\n"
      "Examples:\n"
      "  syncopate sbatch --nodes 2 --strategy multi-worker-mirrored --print -- --epochs 3\n"
      "  syncopate sbatch --nodes 4 --strategy parameter-server --servers 2 --partition cpu\n"
      "  syncopate sbatch --script build --print");
}

}  // namespace

CommandOptions parse_sbatch_options(std::span<const std::string> arguments) {
  SbatchOptions options;
  CLI::App app("Submits a training job to Slurm, or prints its script to be edited.",
               "syncopate sbatch");
  add_flags(app, options);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const auto own = static_cast<std::size_t>(dashes - arguments.begin());
  if (const auto help = parse_flags(app, arguments.first(own))) return TextOptions{*help};
  if (dashes != arguments.end()) options.train_flags.assign(dashes + 1, arguments.end());
  check_sizes(app, options);
  check_strategy(app, options);
  if (!options.strategy.empty()) {
    const TrainOptions train = check_train_flags(options);
    options.data = train.data;
    options.uses_mpirun = train.strategy.collective == "mpi";
    fit_cpus(train, options);
  } else if (!options.train_flags.empty() && options.script == "build") {
    throw UsageError("--script build trains nothing; leave the flags behind the two dashes out");
  }
  return options;
}

}  // namespace syncopate
