#include "deploy/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "deploy/cli/cluster_options.h"
#include "deploy/cli/flags.h"
#include "deploy/cli/launch_options.h"
#include "deploy/cli/sbatch_options.h"
#include "deploy/cli/serve_options.h"
#include "deploy/cli/train_options.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "worker/run/run_sizes.h"
#include "worker/run/version.h"

namespace syncopate {
namespace {

CommandOptions parse_evaluate(std::span<const std::string> arguments,
                              const Environment& environment) {
  EvaluateOptions options;
  options.lanes = default_lanes();
  options.cache_dir = default_cache_dir(environment);
  CLI::App app("Measures a checkpoint on a test split: every sample exactly once.",
               "syncopate evaluate");
  app.add_option("--checkpoint", options.checkpoint, "file that train wrote")
      ->required()
      ->group("What");
  add_data_flags(app, options.model, options.data, options.cache_dir, options.seed);
  app.add_option("--threads", options.lanes, "compute lanes")
      ->capture_default_str()
      ->group("Where");
  app.add_option("--input-threads", options.input_threads, "threads that read")
      ->capture_default_str()
      ->group("Where");
  app.add_flag("--json", options.json, "one JSON object instead of text");
  if (const auto help = parse_flags(app, arguments)) return TextOptions{*help};
  require_name("--model", options.model, names_of(networks()));
  require_threads("--threads", options.lanes);
  require_threads("--input-threads", options.input_threads);
  return options;
}

CommandOptions parse_info(std::span<const std::string> arguments) {
  InfoOptions options;
  CLI::App app("Says what is built in, and which libraries were found.", "syncopate info");
  app.add_flag("--json", options.json, "one JSON object instead of text");
  if (const auto help = parse_flags(app, arguments)) return TextOptions{*help};
  return options;
}

CommandOptions parse_doctor(std::span<const std::string> arguments,
                            const Environment& environment) {
  const auto asks_for_help = [](const std::string& word) {
    return word == "--help" || word == "-h";
  };
  if (std::ranges::any_of(arguments, asks_for_help)) {
    return TextOptions{
        "Looks at this machine, or at all tasks of a job, for the usual mistakes, before anything\n"
        "is trained. Takes the flags of train, and is started as train would be:\n\n"
        "  syncopate doctor --strategy mirrored --replicas 2\n"
        "  srun syncopate doctor --strategy multi-worker-mirrored --checkpoint-dir /shared/run\n"
        "  syncopate launch --workers 2 -- doctor --strategy multi-worker-mirrored\n\n"
        "The first task prints what is wrong and what to try, and what is well. Exit codes: 0\n"
        "nothing is wrong; 1 an error was found; 2 wrong usage.\n"};
  }
  CommandOptions options = parse_train_options(arguments, environment);
  auto* train = std::get_if<TrainOptions>(&options);
  if (train == nullptr) return options;
  return DoctorOptions{std::move(*train), environment};
}

bool is_local_rank(std::string_view word) {
  return word.starts_with("--local-rank=") || word.starts_with("--local_rank=");
}

}  // namespace

std::filesystem::path default_cache_dir(const Environment& environment) {
  const auto named = [&](const char* variable) { return environment.get(variable).value_or(""); };
  if (const std::string dir = named("SYNCOPATE_CACHE_DIR"); !dir.empty()) return dir;
  if (const std::string dir = named("XDG_CACHE_HOME"); !dir.empty()) {
    return std::filesystem::path(dir) / "syncopate";
  }
  if (const std::string dir = named("HOME"); !dir.empty()) {
    return std::filesystem::path(dir) / ".cache" / "syncopate";
  }
  return std::filesystem::temp_directory_path() / "syncopate-cache";
}

CommandOptions parse_command_line(std::span<const std::string> arguments,
                                  const Environment& environment) {
  // torch.distributed.launch --no-python puts it in front of what the user wrote.
  if (!arguments.empty() && is_local_rank(arguments.front())) arguments = arguments.subspan(1);
  const std::string usage =
      "syncopate trains a network from the same first bits on the same samples under any "
      "strategy.\n\n"
      "  syncopate train [FLAGS]                    trains; alone: mnist-cnn on digits\n"
      "  syncopate evaluate --checkpoint F [FLAGS]  measures a checkpoint on the test split\n"
      "  syncopate launch --workers N -- train ...  trains with N processes on this machine\n"
      "  syncopate serve [FLAGS]                    serves variables to the workers of a job\n"
      "  syncopate sbatch --strategy S ...          submits a job to Slurm, or prints its script\n"
      "  syncopate cluster                          says who this task is, and who says so\n"
      "  syncopate doctor [FLAGS OF train]          names mistakes before anything is trained\n"
      "  syncopate info [--json]                    says what is built in\n\n"
      "`syncopate COMMAND --help` lists a command's flags.\n";
  if (arguments.empty())
    throw UsageError(
        "which command? Choose one of train, evaluate, info, launch, serve, sbatch, cluster, "
        "doctor, --help");
  const std::string& command = arguments.front();
  const auto rest = arguments.subspan(1);
  if (command == "train") return parse_train_options(rest, environment);
  if (command == "evaluate") return parse_evaluate(rest, environment);
  if (command == "info") return parse_info(rest);
  if (command == "serve") return parse_serve_options(rest, environment);
  if (command == "sbatch") return parse_sbatch_options(rest);
  if (command == "launch") return parse_launch_options(rest, environment);
  if (command == "doctor") return parse_doctor(rest, environment);
  if (command == "cluster") return parse_cluster_options(rest, environment);
  if (command == "--help" || command == "-h" || command == "help") return TextOptions{usage};
  if (command == "--version") {
    return TextOptions{"syncopate " + std::string(program_version()) + "\n"};
  }
  throw UsageError("unknown command " + command +
                   suggest(command, {"train", "evaluate", "info", "launch", "serve", "sbatch",
                                     "cluster", "doctor", "--help", "--version"}));
}

}  // namespace syncopate
