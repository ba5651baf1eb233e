#include "deploy/launch_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "deploy/flags.h"
#include "deploy/launch/local_roles.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostRestarts = 1'000'000;

// "--rank 1" or "--rank=1"
bool has_flag(std::span<const std::string> arguments, const std::string& flag) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == flag || argument.starts_with(flag + "=");
  });
}

// What is given twice counts the last time, as for train itself.
std::string value_of(std::span<const std::string> arguments, const std::string& flag) {
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
    if (arguments[i] == flag && i + 1 < arguments.size()) value = arguments[i + 1];
  }
  return value;
}

void check_role_arguments(const LaunchOptions& options) {
  const std::vector<std::string>& arguments = options.role_arguments;
  if (arguments.empty()) {
    throw UsageError(
        "launch what? Give the command behind two dashes: syncopate launch --workers 2 -- train "
        "[FLAGS]");
  }
  if (arguments.front() != "train") {
    throw UsageError("launch starts train, not " + arguments.front() +
                     "; expected syncopate launch --workers 2 -- train [FLAGS]");
  }
  for (const char* flag : {"--rank", "--world-size", "--rendezvous"}) {
    if (has_flag(arguments, flag)) {
      throw UsageError(std::string(flag) +
                       " would make all workers the same one: launch tells each who it is; leave " +
                       flag + " out");
    }
  }
  if (options.rules.most_restarts > 0 && !has_flag(arguments, "--checkpoint-dir")) {
    throw UsageError(
        "--restart " + std::to_string(options.rules.most_restarts) +
        ": without checkpoints training would begin anew; give train a --checkpoint-dir");
  }
}

void add_variables(const std::vector<std::string>& assignments, LaunchOptions& options) {
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError("--env " + assignment + ": expected NAME=VALUE");
    }
    const std::string variable = assignment.substr(0, equals);
    if (is_set_by_launch(variable)) {
      throw UsageError("--env " + assignment + ": launch sets this one itself, for each role");
    }
    options.environment[variable] = assignment.substr(equals + 1);
    options.added_variables.push_back(variable);
  }
}

}  // namespace

CommandOptions parse_launch_options(std::span<const std::string> arguments,
                                    const Environment& environment) {
  LaunchOptions options;
  options.environment = environment.variables();
  std::string on_failure = "auto";
  std::string bind = "auto";
  std::vector<std::string> assignments;
  CLI::App app(
      "Starts the roles of a job as processes on this machine and prints what they say, each line "
      "with the\nrole's name in front.",
      "syncopate launch");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto* workers = app.add_option("--workers", options.workers, "how many processes train");
  app.add_option("--servers", options.servers, "how many parameter servers beside them")
      ->capture_default_str();
  app.add_option("--env", assignments, "NAME=VALUE for every role; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option("--restart", options.rules.most_restarts,
                 "after a failure start all again from the newest checkpoint, so many times")
      ->capture_default_str();
  app.add_option("--on-failure", on_failure,
                 "auto | stop (one failed: the others end too) | continue (they go on)")
      ->capture_default_str();
  app.add_option("--bind", bind,
                 "auto (each worker gets its part of the CPUs, where they go round) | none")
      ->capture_default_str();
  app.footer(
      "\nSIGINT, SIGTERM and SIGUSR1 are passed on to all roles; the same one three times kills "
      "them.\n"
      "With --collective mpi among the flags of train, mpirun starts the workers.\n"
      "Exit code: the worst of the roles', 2 before 1 before 75 before 0.\n\n"
      "Example:\n"
      "  syncopate launch --workers 2 -- train --strategy multi-worker-mirrored --epochs 1");

  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const auto own = static_cast<std::size_t>(dashes - arguments.begin());
  if (const auto help = parse_flags(app, arguments.first(own))) return TextOptions{*help};
  if (dashes != arguments.end()) options.role_arguments.assign(dashes + 1, arguments.end());

  if (workers->count() == 0) throw UsageError("launch how many? Give --workers, such as 2");
  require_between("--workers", options.workers, 1, kMostWorkers);
  require_at_least("--servers", options.servers, 0);
  if (options.servers > 0) {
    throw UnavailableError("--servers " + std::to_string(options.servers) +
                           ": parameter servers are not built yet; leave --servers out");
  }
  require_between("--restart", options.rules.most_restarts, 0, kMostRestarts);
  require_name("--on-failure", on_failure, {"auto", "stop", "continue"});
  require_name("--bind", bind, {"auto", "none"});
  options.bind_workers = bind == "auto";
  if (on_failure == "continue") options.rules.on_failure = FailureRule::kContinue;
  check_role_arguments(options);
  add_variables(assignments, options);
  options.with_mpirun = value_of(options.role_arguments, "--collective") == "mpi";
  return options;
}

}  // namespace syncopate
