// Parses the command line of `syncopate launch`. Its own flags end at `--`.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "deploy/launch/role_commands.h"
#include "models/base/errors.h"
#include "worker/run/job_membership.h"

namespace syncopate {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostServers = 1024;
constexpr int kMostRestarts = 1'000'000;
constexpr double kLatestJoin = 1e6;  // latest time of --join, in seconds
// The longest delay before a restart, in seconds. It is below 60 s, because the other roles wait
// that long for a role that is started again.
constexpr double kLongestRestart = 45.0;

// Returns the environment of worker 0. The flags of the workers are parsed in it before any role
// starts.
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

// Returns the job's rules for failed roles and restarts, and sets the note. On entry
// `options.rules` holds what the flags say about restarts.
LaunchRules rules_for(LaunchOptions& options, OnFailure on_failure,
                      const std::optional<double>& restart_after, const TrainOptions& train) {
  const LaunchedJob job{.has_servers = options.servers > 0,
                        .consistency = train.strategy.consistency,
                        .has_checkpoints = !train.loop.checkpoint_dir.empty()};
  LaunchRules rules = choose_rules(on_failure, options.rules.most_restarts, job);
  if (on_failure == OnFailure::kContinue && !can_go_on_without_a_worker(job)) {
    options.note =
        "--on-failure continue has no effect here: each task waits for all others in every step, "
        "and a failed one ends the job";
  }
  rules.roles_meet = options.trains() && train.strategy.collective != "mpi" &&
                     options.workers + options.servers > 1;
  const bool loses_work = !rules.restarts_together && !rules.workers.restarts_alone;
  if (rules.most_restarts > 0 && loses_work) {
    throw UsageError(fmt::format(
        "--restart {}: without checkpoints training would begin again at step 0; give train a "
        "--checkpoint-dir",
        rules.most_restarts));
  }
  rules.stopped_timeout = served_peer_timeout(train.peer_timeout, train.cluster);
  if (restart_after) {
    const auto wait = std::chrono::milliseconds(std::llround(*restart_after * 1000.0));
    rules.first_back_off = rules.longest_back_off = rules.pause_before_all = wait;
  }
  return rules;
}

// Refuses late workers in a job with a fixed number of workers, and in a job where all workers are
// late.
void check_joins(const LaunchOptions& options, const TrainOptions& train) {
  if (options.joins.empty()) return;
  const std::string flag = "--join " + to_string(options.joins.front());
  const bool waits = train.strategy.consistency.consistency == ps::Consistency::kSync;
  if (waits || !has_servers(train)) {
    throw UsageError(fmt::format(
        "{}: --strategy {} {}; choose parameter-server with --consistency async or ssp", flag,
        train.strategy.name, waits ? "has a fixed number of workers" : "is one process"));
  }
  const auto late = late_workers(options.workers, options.joins).size();
  if (std::cmp_equal(late, places_of(options.workers, options.joins))) {
    throw UsageError(flag + ": one worker must be there from the start; give more --workers");
  }
}

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// Takes the word behind `--` if it is the path of a program, which the workers run. Throws
// UsageError for a word that is neither a path nor a command that launch starts.
void take_program(LaunchOptions& options) {
  std::vector<std::string>& arguments = options.role_arguments;
  const std::string word = arguments.front();
  if (word == "train" || word == "doctor") return;
  const bool is_path = word.find('/') != std::string::npos;
  if (!is_executable_file(word)) {
    throw UsageError(
        is_path ? fmt::format("launch: {} is not an executable file; give the path of a program, "
                              "or train [FLAGS]",
                              word)
                : fmt::format("launch starts train or doctor, not {0}; give syncopate launch "
                              "--workers 2 -- train [FLAGS], or the path of a program, such as "
                              "./{0}",
                              word));
  }
  options.program = std::filesystem::absolute(word);
  arguments.erase(arguments.begin());
}

// Parses the flags of the workers, including the file of --config. Returns the text of train's help
// if the flags ask for it.
std::optional<std::string> check_role_arguments(LaunchOptions& options, OnFailure on_failure,
                                                const std::optional<double>& restart_after) {
  if (options.role_arguments.empty()) {
    throw UsageError(
        "launch: the command is missing; give it behind two dashes: syncopate launch --workers 2 "
        "-- train [FLAGS]");
  }
  take_program(options);
  const bool has_program = !options.program.empty();
  const std::vector<std::string>& arguments = options.role_arguments;
  std::optional<OwnWorkload> own;
  if (has_program) {
    own = {.program = options.program.filename().string(), .takes_other_flags = true};
  }
  const auto parse = [&](bool under_mpirun) {
    return parse_train(std::span(arguments).subspan(has_program ? 0 : 1),
                       environment_of_worker(options, under_mpirun), own);
  };
  const bool names_mpi = std::any_of(arguments.begin(), arguments.end(), [](const auto& word) {
    return word == "mpi" || word == "--collective=mpi";
  });
  const CommandOptions parsed = parse(names_mpi);
  if (const auto* text = std::get_if<TextOptions>(&parsed)) return text->text;
  const TrainOptions& train = std::get<TrainOptions>(parsed);
  if (train.cluster.source == "flags") {
    throw UsageError(
        "--rank, --world-size and --rendezvous: launch gives each task its own; leave them out");
  }
  // The environment that mpirun gives to worker 0 has no servers, so train's parser does not refuse
  // the servers.
  if (names_mpi && options.servers > 0) {
    throw UsageError(
        fmt::format("--servers {}: a job under --collective mpi has no servers; choose --strategy "
                    "parameter-server without --collective, or leave --servers out",
                    options.servers));
  }
  check_joins(options, train);
  options.rules = rules_for(options, on_failure, restart_after, train);
  if (has_program) {
    options.server_arguments = command_line_of(train);
    options.server_arguments.insert(options.server_arguments.begin(), "train");
  }
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
      throw UsageError(fmt::format("--join {}: worker {} is named twice; name each worker once",
                                   text, join.worker));
    }
    if (join.worker >= kMostWorkers || join.at_seconds > kLatestJoin) {
      throw UsageError(fmt::format("--join {}: expected a worker below {} and at most 1000000s",
                                   text, kMostWorkers));
    }
    options.joins.push_back(join);
  }
}

void add_variables(const std::vector<std::string>& assignments, LaunchOptions& options) {
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(fmt::format("--env {}: expected NAME=VALUE", assignment));
    }
    const std::string variable = assignment.substr(0, equals);
    if (is_set_by_launch(variable)) {
      throw UsageError(fmt::format(
          "--env {}: launch sets this variable for each role; leave it out", assignment));
    }
    options.environment[variable] = assignment.substr(equals + 1);
    options.added_variables.push_back(variable);
  }
}

}  // namespace

CommandOptions parse_launch(std::span<const std::string> arguments,
                            const Environment& environment) {
  LaunchOptions options;
  options.environment = environment.variables();
  OnFailure on_failure = OnFailure::kAuto;
  std::string bind = "auto";
  std::vector<std::string> assignments;
  std::vector<std::string> joins;
  std::optional<double> restart_after;
  FlagSet flags(
      "syncopate launch",
      "Starts the roles of a job (workers and servers) as processes on this machine, and prints "
      "their output; each line begins with the name of its role.",
      "SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU and SIGQUIT are passed on to all roles;\n"
      "when the same signal arrives for the third time, the roles are killed.\n"
      "With --collective mpi among the flags of train, mpirun starts the workers.\n"
      "The exit code is the worst exit code of all roles; from worst to best: 2, 1, 75, 0.\n\n"
      "Examples:\n"
      "  syncopate launch --workers 2 -- train --strategy multi-worker-mirrored --epochs 1\n"
      "  syncopate launch --workers 4 --servers 2 -- train --strategy parameter-server\n"
      "  syncopate launch --workers 2 -- ./PROGRAM --strategy multi-worker-mirrored");
  flags.begin_group("Cluster");
  flags.add("--workers", &options.workers, "number of worker processes",
            {.least = 1, .most = kMostWorkers, .required = true});
  flags.add("--servers", &options.servers, "number of parameter server processes",
            {.least = 0, .most = kMostServers});
  flags.add("--bind", &bind,
            "CPUs that a worker may use (auto: an equal share of the CPUs; none: all CPUs). With "
            "fewer CPUs than workers, auto means none",
            {.choices = {"auto", "none"}});
  flags.add("--env", &assignments, "environment variable that is set for every role",
            {.value = "NAME=VALUE", .repeats = true});
  flags.begin_group("Failures");
  flags.add("--on-failure", enum_target(on_failure),
            "what the other roles do when a role fails (auto: continue if a worker fails under "
            "--consistency async, ssp, or sync with backup workers; else stop)");
  flags.add("--restart", &options.rules.most_restarts,
            "largest number of restarts after failures. In a job with servers, only the failed "
            "role restarts if the other roles can continue without it; else all roles restart from "
            "the newest checkpoint",
            {.least = 0, .most = kMostRestarts});
  flags.add("--restart-after", &restart_after,
            "time between a failure and the restart. It is at most 45 s, because the other roles "
            "wait only 60 s for a restarted role",
            {.unit = "seconds",
             .default_text = "0 if all roles restart; if only one role restarts, 0.2 at first, "
                             "doubled at each further restart, up to 2",
             .least = 0.0,
             .most = kLongestRestart});
  flags.begin_group("Fault injection");
  flags.add("--join", &joins,
            "start worker W only at this time after the start of the job, such as worker=4,at=30s. "
            "If W is not below --workers, worker W is an additional worker. Requires servers and "
            "--consistency async or ssp",
            {.value = "worker=W,at=TIME", .repeats = true});
  flags.take_rest(options.role_arguments, "train|doctor|PROGRAM [FLAGS]", "train and its flags",
                  train_rest_flags(), "train");
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  options.bind_workers = bind == "auto";
  add_variables(assignments, options);
  add_joins(joins, options);
  if (const auto help = check_role_arguments(options, on_failure, restart_after)) {
    return TextOptions{*help};
  }
  return options;
}

}  // namespace syncopate
