// Parses the command line of `syncopate sbatch`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "deploy/slurm/gpu_request.h"
#include "deploy/slurm/job_script.h"
#include "deploy/slurm/resource_fit.h"
#include "models/base/errors.h"
#include "worker/input/record/example.h"
#include "worker/train/tensorboard.h"

namespace syncopate {
namespace {

constexpr int kMostNodes = 65536;

Names script_names() {
  Names names;
  for (const JobScriptRow& row : job_scripts()) names.push_back(row.name);
  return names;
}

std::string script_for(const std::string& name, int tasks) {
  const StrategyRow& strategy = row_of({.name = name});
  if (strategy.has_servers()) return "parameter_server_het";
  const bool has_tasks = strategy.needs_other_tasks() || (strategy.has_stages() && tasks > 1);
  return has_tasks ? "multi_node" : "one_node";
}

// Returns the number of tasks that the flags give; a number that is not given counts as one.
int tasks_of(const SbatchOptions& options) {
  return std::max(1, options.nodes) * tasks_on_node(options);
}

// The flags that request resources of the tasks that train, named as sbatch names them.
struct ResourceFlag {
  std::string_view name;
  std::string_view help;
  std::string_view value;
};
constexpr std::array kResources = {
    ResourceFlag{"gpus-per-task", "number of GPUs for each process that trains", "N"},
    ResourceFlag{"gres", "generic resources of each node, such as gpu:a100:4", "LIST"},
    ResourceFlag{"constraint", "features that each node must have, such as h100", "LIST"},
    ResourceFlag{"mem", "memory of each node, such as 64G", "SIZE"}};

// Options of sbatch that --sbatch-option refuses, because a flag or the script sets them.
constexpr std::array<std::string_view, 13> kOwnOptions = {
    "nodes",    "ntasks", "ntasks-per-node", "cpus-per-task", "time", "partition", "account",
    "job-name", "qos",    "signal",          "open-mode",     "wrap", "array"};

// Refuses a value that cannot stand in a #SBATCH line, which has no quotes.
void require_plain_word(std::string_view flag, const std::string& value) {
  const bool is_plain =
      std::ranges::all_of(value, [](unsigned char c) { return std::isgraph(c) != 0 && c != '#'; });
  if (is_plain) return;
  throw UsageError(fmt::format("{} '{}': expected one word as sbatch takes it", flag, value));
}

void require_value(std::string_view flag, const std::string& value) {
  if (value.empty())
    throw UsageError(fmt::format("{} '': expected a value as sbatch takes it", flag));
  require_plain_word(flag, value);
}

// Returns the elements of an array job, such as "0-9%4", from the text "seed=0-9%4". Source of the
// form: the manual page of sbatch, --array.
std::string parse_array(const std::string& text) {
  constexpr std::string_view kSeed = "seed=";
  const std::string elements = text.starts_with(kSeed) ? text.substr(kSeed.size()) : "";
  const auto is_of_list = [](unsigned char c) {
    return std::isdigit(c) != 0 ||
           std::string_view("-,:%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const bool is_list = !elements.empty() &&
                       std::isdigit(static_cast<unsigned char>(elements.front())) != 0 &&
                       std::isdigit(static_cast<unsigned char>(elements.back())) != 0 &&
                       std::ranges::all_of(elements, is_of_list);
  if (is_list) return elements;
  throw UsageError(fmt::format(
      "--array {}: expected seed=LIST with the list as sbatch takes it, such as seed=0-9, "
      "seed=1,3,5 or seed=0-9%4 for four at a time",
      text.empty() ? "''" : text));
}

// Adds an option of sbatch in the form NAME=VALUE or NAME.
void add_other_option(const std::string& text, SbatchOptions& options) {
  std::string name = text.substr(0, text.find('='));
  if (name.starts_with("--")) name.erase(0, 2);
  const auto fail = [&](const std::string& why) {
    throw UsageError(fmt::format("--sbatch-option {}: {}", text.empty() ? "''" : text, why));
  };
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
  });
  if (!is_name || text.ends_with('=')) {
    fail(
        "expected NAME=VALUE as sbatch takes it, such as mail-type=END, or a NAME such as "
        "exclusive");
  }
  if (std::ranges::find(kResources, name, &ResourceFlag::name) != kResources.end()) {
    fail(fmt::format("give --{}", name));
  }
  if (std::ranges::find(kOwnOptions, name) != kOwnOptions.end()) {
    const bool is_of_script = name == "signal" || name == "open-mode" || name == "wrap";
    fail(is_of_script       ? "the script sets it, because the job returns to the queue; edit what "
                              "--print prints"
         : name == "ntasks" ? "give --nodes and --tasks-per-node"
         : name == "array"
             ? "give --array seed=0-9, so that each element trains with its own seed"
             : fmt::format("give --{}", name == "ntasks-per-node" ? "tasks-per-node" : name));
  }
  if (name == "requeue" || name == "no-requeue") {
    options.requeues = name == "requeue";
    options.notes.emplace_back(
        options.requeues
            ? "--sbatch-option requeue: the script has it already"
            : "--sbatch-option no-requeue: at its time limit the job writes a checkpoint and ends; "
              "its output says how to go on");
    return;
  }
  const std::size_t at = text.find('=');
  const std::string value = at == std::string::npos ? "" : text.substr(at + 1);
  require_plain_word("--sbatch-option", text);
  options.other_options.emplace_back(name, value);
}

// The script's own flags of train, in front of the user's: in the script the shell expands $RUN.
constexpr const char* kScriptsCheckpoints = "$RUN/checkpoints";
constexpr const char* kScriptsMetrics = "$RUN/metrics.jsonl";

// Parses the flags of train in the environment of worker 0, so that mistakes are reported before
// the job is submitted. The CPUs of this machine are not counted, because the job runs on other
// machines.
TrainOptions check_train_flags(const SbatchOptions& options) {
  std::vector<std::string> arguments = options.train_flags;
  arguments.insert(arguments.begin(),
                   {"--strategy", options.strategy, "--share-devices", "--checkpoint-dir",
                    kScriptsCheckpoints, "--metrics", kScriptsMetrics});
  const int workers = nodes_of(options) * tasks_on_node(options);
  const Environment worker({{"SYNCOPATE_ROLE", "worker"},
                            {"SYNCOPATE_INDEX", "0"},
                            {"SYNCOPATE_WORKERS", std::to_string(workers)},
                            {"SYNCOPATE_SERVERS", std::to_string(options.servers)},
                            {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}});
  const CommandOptions parsed = parse_train(arguments, worker);
  if (std::holds_alternative<TextOptions>(parsed)) {
    throw UsageError("--help behind --: see syncopate train --help");
  }
  const auto& train = std::get<TrainOptions>(parsed);
  if (train.strategy.name != options.strategy) {
    throw UsageError(
        fmt::format("--strategy {} behind --: give it in front, because it decides which script is "
                    "submitted",
                    train.strategy.name));
  }
  if (train.cluster.source == "flags") {
    throw UsageError(
        "--rank, --world-size and --rendezvous: Slurm gives each task its own; leave them out");
  }
  const bool shares_process =
      options.script == "one_node" && strategy_of(train).has_replicas_of_one_task();
  const bool has_gpus =
      train.takes_every_device && (!train.takes_own_gpus || !requested_gpus(options).is_empty());
  const bool has_replicas = has_gpus || train.strategy.replicas > 1 ||
                            std::ranges::any_of(options.train_flags, [](const std::string& flag) {
                              return flag.starts_with("--replicas");
                            });
  if (shares_process && !has_replicas) {
    throw UsageError(fmt::format(
        "--strategy {} requires a number of replicas behind --, such as -- --replicas 2{}",
        options.strategy,
        train.takes_every_device ? ", or GPUs in front of it, such as --gpus-per-task 2" : ""));
  }
  return train;
}

// Refuses what the build that submits cannot do, unless the job runs another program.
void check_build(const TrainOptions& train, const SbatchOptions& options) {
  if (!options.program.empty() || !options.container.empty()) return;
  const auto row =
      std::ranges::find(datasets(), train.data.substr(0, train.data.find(':')), &DatasetRow::name);
  if (row != datasets().end() && row->takes(DataFlags::kFeatures))
    require_records(fmt::format("--data {}", row->pattern));
  if (!train.tensorboard.empty()) require_tensorboard();
}

// Refuses flags of train that all elements of an array would share: a seed, and files to write.
void check_array(const TrainOptions& train, const SbatchOptions& options) {
  if (options.array.empty()) return;
  const auto is_seed = [](const std::string& word) {
    return word == "--seed" || word.starts_with("--seed=");
  };
  if (std::ranges::any_of(options.train_flags, is_seed)) {
    throw UsageError(
        "--seed behind -- with --array seed=LIST: each element trains with its own; leave one "
        "out");
  }
  const TrainLoopOptions& loop = train.loop;
  for (const auto& [flag, path, scripts] :
       {std::tuple{"--checkpoint-dir", loop.checkpoint_dir, kScriptsCheckpoints},
        std::tuple{"--metrics", train.metrics, kScriptsMetrics},
        std::tuple{"--tensorboard", train.tensorboard, ""},
        std::tuple{"--trace", train.trace, ""}}) {
    if (path == scripts) continue;
    throw UsageError(fmt::format(
        "{} {} with --array: all elements would write there; leave it out (checkpoints and metrics "
        "of each are in runs/NAME-JOB/seed-N), or submit one job per seed, with --seed N behind -- "
        "in place of --array",
        flag, path.string()));
  }
}

// Chooses the job script and fills in its numbers of tasks.
void check_strategy(const FlagSet& flags, SbatchOptions& options) {
  if (options.strategy.empty() && options.script.empty()) {
    throw UsageError("--strategy is missing; give --strategy NAME, or --script NAME");
  }
  if (options.script.empty()) options.script = script_for(options.strategy, tasks_of(options));
  const bool is_heterogeneous = options.script == "parameter_server_het";
  flags.require("--servers", is_heterogeneous || options.script == "compare",
                "--strategy parameter-server");
  for (const char* flag : {"--server-nodes", "--server-partition"}) {
    flags.require(flag, is_heterogeneous, "--strategy parameter-server");
  }
  if (is_heterogeneous && options.servers == 0) options.servers = options.server_nodes;
  if (is_heterogeneous && options.servers % options.server_nodes != 0) {
    throw UsageError(
        fmt::format("--servers {}: expected a multiple of --server-nodes {}, since "
                    "all nodes run equally many servers",
                    options.servers, options.server_nodes));
  }
  const int tasks = nodes_of(options) * tasks_on_node(options);
  if (options.script == "compare" && options.servers >= tasks) {
    throw UsageError(fmt::format(
        "--servers {} of {} tasks: no task is left to train; give more --nodes or --tasks-per-node",
        options.servers, tasks));
  }
  if (is_heterogeneous && !options.array.empty()) {
    throw UsageError(
        "--array: Slurm has no arrays of jobs whose servers have a component of their own; submit "
        "one job per seed, with --seed N behind --");
  }
  const bool is_one_task = options.script == "one_node" || options.script == "build";
  if (is_one_task && tasks_of(options) > 1) {
    throw UsageError(fmt::format(
        "{} is one process, but --nodes and --tasks-per-node request {}; choose --strategy "
        "multi-worker-mirrored or parameter-server",
        options.strategy.empty() ? "--script " + options.script : "--strategy " + options.strategy,
        tasks_of(options)));
  }
}

// The default of flags that the script sets.
constexpr std::string_view kOfScript = "the value in the job script that --print shows";

void add_sbatch_flags(FlagSet& flags, SbatchOptions& options, std::vector<std::string>& others) {
  const auto count = [](double most, std::string default_text) {
    return FlagRules{.default_text = std::move(default_text), .least = 1, .most = most};
  };
  flags.add("--strategy", &options.strategy,
            "distribution strategy; it decides which script is submitted",
            {.choices = names_of(strategies()), .excludes = {"--script"}});
  flags.add("--script", &options.script,
            "script to submit, in place of the script that --strategy selects",
            {.choices = script_names()});
  flags.add("--print", &options.print, "print the script instead of submitting it");
  flags.begin_group("Size of the job");
  flags.add("--nodes", &options.nodes,
            "number of nodes; in a job with servers, only the nodes of the workers are counted",
            count(kMostNodes, std::string(kOfScript)));
  flags.add("--tasks-per-node", &options.tasks_per_node, "number of processes on each node",
            count(kMostJobTasks,
                  std::string(kOfScript) + "; on GPUs, as many as use all GPUs of a node"));
  flags.add("--cpus-per-task", &options.cpus_per_task, "number of CPUs for each process",
            count(kMostJobTasks,
                  "as many as the flags --replicas and --threads of train need, at least 2; on "
                  "GPUs, a process that uses 1/k of a node's GPUs gets 1/k of the node's CPUs"));
  flags.add("--servers", &options.servers, "number of parameter servers",
            count(kMostJobTasks, "one for each server node"));
  flags.add("--server-nodes", &options.server_nodes, "number of nodes for the servers",
            count(kMostNodes, ""));
  flags.add("--time", &options.time,
            "time limit of the job in the format of sbatch, such as 2:00:00",
            {.value = "TIME", .default_text = std::string(kOfScript)});
  for (const ResourceFlag& row : kResources) {
    flags.add(fmt::format("--{}", row.name),
              [&options, &row](const std::string& text) {
                require_value(fmt::format("--{}", row.name), text);
                options.resources.emplace_back(row.name, text);
              },
              std::string(row.help),
              {.value = std::string(row.value),
               .default_text = row.name == "gpus-per-task"
                                   ? "none; with --devices cuda among the flags of train, the job "
                                     "requests one GPU per replica by --gres"
                                   : "as Slurm decides"});
  }
  flags.add("--array", [&options](const std::string& text) { options.array = parse_array(text); },
            "submit an array job: element i trains with --seed i, and writes to its own folder. "
            "Example: seed=0-9%4 runs ten elements, at most four at a time",
            {.value = "seed=LIST", .default_text = "a single job"});
  flags.begin_group("Place of the job");
  flags.add("--partition", &options.partition, "Slurm partition of the job",
            {.value = "NAME", .default_text = "as Slurm decides"});
  flags.add("--server-partition", &options.server_partition, "Slurm partition of the servers",
            {.value = "NAME", .default_text = "the value of --partition"});
  flags.add("--account", &options.account, "Slurm account that the job is charged to",
            {.value = "NAME", .default_text = "as Slurm decides"});
  flags.add("--qos",
            [&options](const std::string& text) {
              require_value("--qos", text);
              options.other_options.emplace_back("qos", text);
            },
            "quality of service (QOS) of the job",
            {.value = "NAME", .default_text = "as Slurm decides"});
  flags.add("--sbatch-option", &others,
            "further option that is passed to Slurm's sbatch, such as mail-type=END",
            {.value = "NAME[=VALUE]", .default_text = "none", .repeats = true});
  flags.add("--job-name", &options.job_name, "name of the job",
            {.value = "NAME", .default_text = std::string(kOfScript)});
  flags.add("--container", &options.container, "Apptainer image that contains the program",
            {.value = "FILE", .default_text = "none"});
  flags.add("--container-flags", &options.container_flags,
            "flags of `apptainer exec`, such as \"--nv --bind /scratch\"; the folder where the job "
            "was submitted is always bound",
            {.value = "FLAGS", .needs = "--container"});
  flags.add("--program", &options.program, "executable file of syncopate that the job runs",
            {.value = "FILE",
             .default_text = "this executable; with --container, `syncopate` in the image"});
  flags.take_rest(options.train_flags, "[FLAGS OF train]", "flags of train", train_rest_flags());
}

}  // namespace

CommandOptions parse_sbatch(std::span<const std::string> arguments) {
  SbatchOptions options;
  FlagSet flags(
      "syncopate sbatch", "Submits a training job to Slurm, or prints the job script for editing.",
      "The job writes its results below the folder where it was submitted. 60 s before its time\n"
      "limit, the job writes a checkpoint and returns to the queue. When the job starts again, it\n"
      "resumes from this checkpoint.\n\n"
      "Examples:\n"
      "  syncopate sbatch --nodes 2 --strategy multi-worker-mirrored --print -- --epochs 3\n"
      "  syncopate sbatch --nodes 4 --strategy parameter-server --servers 2 --partition cpu\n"
      "  syncopate sbatch --script build --print");
  std::vector<std::string> others;
  add_sbatch_flags(flags, options, others);
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  for (const std::string& option : others) add_other_option(option, options);
  for (const auto& [flag, value] :
       {std::pair{"--time", options.time}, std::pair{"--partition", options.partition},
        std::pair{"--server-partition", options.server_partition},
        std::pair{"--account", options.account}, std::pair{"--job-name", options.job_name}}) {
    require_plain_word(flag, value);
  }
  check_strategy(flags, options);
  if (!options.strategy.empty()) {
    const TrainOptions train = check_train_flags(options);
    options.data = train.data;
    options.uses_mpirun = train.strategy.collective == "mpi";
    check_build(train, options);
    check_array(train, options);
    const int tasks = options.tasks_per_node;
    fit_tasks(train, options);
    if (options.tasks_per_node != tasks) (void)check_train_flags(options);
    fit_cpus(train, options);
    fit_gpus(train, options);
  } else if (!options.array.empty()) {
    throw UsageError(
        "--array requires --strategy; a comparison has its seeds in the variable SEEDS of its "
        "script");
  } else if (!options.train_flags.empty() && options.script == "build") {
    throw UsageError("--script build trains nothing; leave the flags behind -- out");
  } else if (requested_gpus(options).is_empty() &&
             std::ranges::any_of(options.train_flags, [](const std::string& word) {
               return word.starts_with("cuda") || word.starts_with("--devices=cuda");
             })) {
    throw UsageError(fmt::format(
        "--script {} with --devices cuda requests no GPU; give --gres gpu:N or --gpus-per-task N",
        options.script));
  }
  return options;
}

}  // namespace syncopate
