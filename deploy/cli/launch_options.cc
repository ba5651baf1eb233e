#include "deploy/cli/launch_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "deploy/cli/flags.h"
#include "deploy/cli/train_options.h"
#include "deploy/launch/local_roles.h"
#include "models/base/errors.h"
#include "models/base/formatted.h"

namespace syncopate {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostServers = 1024;
constexpr int kMostRestarts = 1'000'000;
constexpr double kLatestJoin = 1e6;  // seconds
// Of the minute for which others wait for a role that comes back; seconds.
constexpr double kLongestRestart = 45.0;

// As worker 0 will see itself, so that what it refuses is said once, and before anything starts.
Environment environment_of_worker(const LaunchOptions& options, bool under_mpirun) {
  const std::string workers = std::to_string(options.workers);
  Environment::Variables variables =
      under_mpirun ? Environment::Variables{{"OMPI_COMM_WORLD_RANK", "0"},
                                            {"OMPI_COMM_WORLD_SIZE", workers},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", workers}}
                   : Environment::Variables{{"SYNCOPATE_ROLE", "worker"},
                                            {"SYNCOPATE_INDEX", "0"},
                                            {"SYNCOPATE_WORKERS", workers},
                                            {"SYNCOPATE_SERVERS", std::to_string(options.servers)},
                                            {"SYNCOPATE_RENDEZVOUS", "127.0.0.1:1"}};
  for (const auto& [variable, value] : options.environment) variables.emplace(variable, value);
  return Environment(std::move(variables));
}

// `options.rules` has what the flags say about restarts.
LaunchRules rules_for(const LaunchOptions& options, OnFailure on_failure,
                      const std::optional<double>& restart_after, const TrainOptions& train) {
  LaunchRules rules = choose_rules(on_failure, options.rules.most_restarts,
                                   {.has_servers = options.servers > 0,
                                    .consistency = train.strategy.consistency,
                                    .has_checkpoints = !train.loop.checkpoint_dir.empty()});
  const bool begins_anew = !rules.restarts_together && !rules.workers.restarts_alone;
  if (rules.most_restarts > 0 && begins_anew) {
    throw UsageError(
        "--restart " + std::to_string(rules.most_restarts) +
        ": without checkpoints training would begin anew; give train a --checkpoint-dir");
  }
  if (restart_after) {
    const auto wait = std::chrono::milliseconds(std::llround(*restart_after * 1000.0));
    rules.first_back_off = rules.longest_back_off = rules.pause_before_all = wait;
  }
  return rules;
}

// That each is one that can come later, and of a job that can begin without it.
void check_joins(const LaunchOptions& options, const TrainOptions& train) {
  if (options.joins.empty()) return;
  const std::string flag = "--join " + to_string(options.joins.front());
  const std::string& strategy = train.strategy.name;
  const bool waits = train.strategy.consistency.consistency == ps::Consistency::kSync;
  if (waits || strategy != "parameter-server") {
    throw UsageError(flag + ": --strategy " + strategy +
                     (waits ? " waits for a fixed number of workers"
                            : " is one process, to which nobody comes later") +
                     "; choose parameter-server with --consistency async or ssp");
  }
  const auto late = late_workers(options.workers, options.joins).size();
  if (std::cmp_equal(late, places_of(options.workers, options.joins))) {
    throw UsageError(flag + ": somebody must be there from the start; give more --workers");
  }
}

// Parses what the workers will be told, file of flags included. Returns train's help when that is
// what was asked for.
std::optional<std::string> check_role_arguments(LaunchOptions& options, OnFailure on_failure,
                                                const std::optional<double>& restart_after) {
  const std::vector<std::string>& arguments = options.role_arguments;
  if (arguments.empty()) {
    throw UsageError(
        "launch what? Give the command behind two dashes: syncopate launch --workers 2 -- train "
        "[FLAGS]");
  }
  if (arguments.front() != "train" && arguments.front() != "doctor") {
    throw UsageError("launch starts train or doctor, not " + arguments.front() +
                     "; expected syncopate launch --workers 2 -- train [FLAGS]");
  }
  const auto parse = [&](bool under_mpirun) {
    return parse_train_options(std::span(arguments).subspan(1),
                               environment_of_worker(options, under_mpirun));
  };
  const bool names_mpi = std::any_of(arguments.begin(), arguments.end(), [](const auto& word) {
    return word == "mpi" || word == "--collective=mpi";
  });
  const CommandOptions parsed = parse(names_mpi);
  if (const auto* text = std::get_if<TextOptions>(&parsed)) return text->text;
  const TrainOptions& train = std::get<TrainOptions>(parsed);
  if (train.cluster.source == "flags") {
    throw UsageError(
        "--rank, --world-size and --rendezvous would make all workers the same one: launch tells "
        "each who it is; leave them out");
  }
  // As train sees it, except under mpirun, which starts workers only.
  if (names_mpi && options.servers > 0) {
    throw UsageError("--servers " + std::to_string(options.servers) +
                     ": under --collective mpi there are none; choose --strategy "
                     "parameter-server without --collective, or leave --servers out");
  }
  check_joins(options, train);
  options.rules = rules_for(options, on_failure, restart_after, train);
  options.checkpoint_dir = train.loop.checkpoint_dir;
  options.record = train.record;
  options.with_mpirun = train.strategy.collective == "mpi";
  return std::nullopt;
}

void add_joins(const std::vector<std::string>& texts, LaunchOptions& options) {
  for (const std::string& text : texts) {
    const Join join = parse_join(text);
    const auto is_same = [&](const Join& other) { return other.worker == join.worker; };
    if (std::any_of(options.joins.begin(), options.joins.end(), is_same)) {
      throw UsageError("--join " + text + ": worker " + std::to_string(join.worker) +
                       " comes once; name each worker once");
    }
    if (join.worker >= kMostWorkers || join.at_seconds > kLatestJoin) {
      throw UsageError("--join " + text + ": expected a worker below " +
                       std::to_string(kMostWorkers) + " and at most 1000000s");
    }
    options.joins.push_back(join);
  }
}

OnFailure parse_on_failure(const std::string& text) {
  require_name("--on-failure", text, {"auto", "stop", "continue"});
  if (text == "stop") return OnFailure::kStop;
  return text == "continue" ? OnFailure::kContinue : OnFailure::kAuto;
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
  std::vector<std::string> joins;
  std::optional<double> restart_after;
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
                 "after a failure start all again from the newest checkpoint, so many times; of a "
                 "job with servers, the role alone where the others can go on")
      ->capture_default_str();
  app.add_option("--restart-after", restart_after,
                 "seconds before a start after a failure (at once for all; 0.2 for one role, "
                 "doubled each time up to 2)");
  app.add_option("--on-failure", on_failure,
                 "stop (one failed: the others end too) | continue (they go on) | auto (stop, but "
                 "workers go on under async, ssp and sync with backup workers)")
      ->capture_default_str();
  app.add_option("--bind", bind,
                 "auto (each worker gets its part of the CPUs, where they go round) | none")
      ->capture_default_str();
  app.add_option("--join", joins,
                 "worker=W,at=TIME, such as worker=4,at=30s: it comes so much later than the "
                 "others, to a job with servers under async or ssp, which begins without it; a "
                 "number from --workers on is one more; repeat for more")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.footer(
      "\nSIGINT, SIGTERM and SIGUSR1 are passed on to all roles; the same one three times kills "
      "them.\n"
      "With --collective mpi among the flags of train, mpirun starts the workers.\n"
      "Exit code: the worst of the roles', 2 before 1 before 75 before 0.\n\n"
      "Examples:\n"
      "  syncopate launch --workers 2 -- train --strategy multi-worker-mirrored --epochs 1\n"
      "  syncopate launch --workers 4 --servers 2 -- train --strategy parameter-server");

  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const auto own = static_cast<std::size_t>(dashes - arguments.begin());
  if (const auto help = parse_flags(app, arguments.first(own))) return TextOptions{*help};
  if (dashes != arguments.end()) options.role_arguments.assign(dashes + 1, arguments.end());

  if (workers->count() == 0) throw UsageError("launch how many? Give --workers, such as 2");
  require_between("--workers", options.workers, 1, kMostWorkers);
  require_between("--servers", options.servers, 0, kMostServers);
  require_between("--restart", options.rules.most_restarts, 0, kMostRestarts);
  if (restart_after && !(*restart_after >= 0.0 && *restart_after <= kLongestRestart)) {
    throw UsageError("--restart-after " + formatted("%g", *restart_after) +
                     ": expected 0 to 45 seconds; the others wait no longer for one that is gone");
  }
  require_name("--bind", bind, {"auto", "none"});
  options.bind_workers = bind == "auto";
  add_variables(assignments, options);
  add_joins(joins, options);
  if (const auto help =
          check_role_arguments(options, parse_on_failure(on_failure), restart_after)) {
    return TextOptions{*help};
  }
  return options;
}

}  // namespace syncopate
