// Runs one replica of `syncopate-bench scaling --strategy multi-worker-mirrored`. It is a task of a
// training job on this machine and trains when rank 0 sends a command.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/harness/bench_commands.h"
#include "bench/harness/local_cluster.h"
#include "bench/scaling/scaling_sides.h"
#include "bench/step/workload.h"
#include "bench/step/workload_data.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

int parse_steps(const std::string& command) {
  std::istringstream words(command);
  std::string verb;
  int steps = 0;
  if (!(words >> verb >> steps) || verb != "run" || steps < 1 ||
      steps > static_cast<int>(RankGroup::kRowLength)) {
    throw UsageError("expected 'run N' or 'quit', got '" + command + "'");
  }
  return steps;
}

// Trains the steps of a command on every rank and returns rank 0's answer.
nlohmann::json train(RankGroup& group, WorkloadTraining& training, int steps) {
  const ScalingTurn turn = train_turn(training, steps);
  std::ranges::copy(turn.steps, group.row(group.rank()).begin());
  const std::vector<double> seconds =
      slowest_of_ranks(group, turn.steps.size(), Deadline::after(std::chrono::seconds(120)));
  return {{"seconds", seconds},
          {"exposed_seconds", turn.exposed_seconds},
          {"communication_seconds", turn.communication_seconds}};
}

// Rank 0 is started by run_scaling and starts the other ranks.
struct ScalingRankOptions {
  int rank = 0;
  int ranks = 2;
  std::string model = "mnist-cnn";
  std::int64_t batch_size = 0;  // number of samples of this replica
  int lanes = 1;
  WorkloadData data;
};

// Runs one rank of a side until rank 0's input ends. Throws UsageError, PeerError, DivergenceError.
void run_scaling_rank(const ScalingRankOptions& options) {
  Workload workload = with_data(find_workload(options.model), options.data);
  if (options.batch_size > 0) workload.batch_size = options.batch_size;
  const auto group =
      make_rank_group(options.rank, options.ranks,
                      scaling_rank_words(workload, options.data, options.ranks, options.lanes));
  const auto membership = join_local_cluster(*group);
  {
    WorkloadTraining training(
        workload,
        {.strategy = kMultiWorkerMirrored, .lanes = options.lanes, .membership = membership.get()});
    serve_commands(
        *group, fmt::format("{} processes, each {}", options.ranks, training.description()),
        [&](const std::string& command) { return train(*group, training, parse_steps(command)); });
  }
  membership->leave();
}

}  // namespace

Command declare_scaling_rank(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<ScalingRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = kMostCount});
  flags.add("--ranks", &options->ranks, "", {.least = 1, .most = kMostCount});
  flags.add("--model", &options->model, "");
  flags.add("--batch-size", &options->batch_size, "", {.least = 1, .most = kMostCount});
  flags.add("--lanes", &options->lanes, "", {.least = 1, .most = kMostCount});
  add_workload_data_flags(flags, options->data, environment);
  return [options] { run_scaling_rank(*options); };
}

}  // namespace syncopate::bench
