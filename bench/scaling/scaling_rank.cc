// Runs one replica of `syncopate-bench scaling --strategy multi-worker-mirrored`. It is a task of a
// training job on this machine and trains when rank 0 sends a command.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/harness/local_cluster.h"
#include "bench/scaling/scaling.h"
#include "bench/step/workload.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

// The alarm ends a rank that hangs. Its time is shorter than the peer's answer timeout.
constexpr unsigned kLongestCommandSeconds = 240;
constexpr std::chrono::seconds kBarrierPatience(120);

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

// Returns the time of the slowest rank for each step on rank 0; empty on the other ranks.
std::vector<double> slowest(RankGroup& group, const std::vector<double>& mine) {
  std::copy(mine.begin(), mine.end(), group.row(group.rank()).begin());
  group.barrier(Deadline::after(kBarrierPatience));
  std::vector<double> result;
  for (std::size_t step = 0; group.rank() == 0 && step < mine.size(); ++step) {
    double seconds = 0.0;
    for (int rank = 0; rank < group.size(); ++rank) {
      seconds = std::max(seconds, group.row(rank)[step]);
    }
    result.push_back(seconds);
  }
  group.barrier(Deadline::after(kBarrierPatience));
  return result;
}

void serve(RankGroup& group, InMemoryTraining& training) {
  while (const std::optional<std::string> command = group.next_command()) {
    if (*command == "quit") return;
    const int steps = parse_steps(*command);
    ::alarm(kLongestCommandSeconds);
    const CommunicationTimes before = training.communication();
    const std::vector<double> seconds = slowest(group, training.run(steps));
    const CommunicationTimes after = training.communication();
    ::alarm(0);
    if (group.rank() != 0) continue;
    const double num_steps = steps + 1;  // run() adds one step that it does not time.
    std::cout << json{{"event", "steps"},
                      {"seconds", seconds},
                      {"exposed_seconds",
                       (after.exposed_seconds - before.exposed_seconds) / num_steps},
                      {"communication_seconds",
                       (after.under_way_seconds - before.under_way_seconds) / num_steps}}
                     .dump()
              << std::endl;
  }
}

}  // namespace

void run_scaling_rank(const ScalingRankOptions& options) {
  Workload workload = find_workload(options.model);
  if (options.batch_size > 0) workload.batch_size = options.batch_size;
  const auto group =
      make_rank_group(options.rank, options.ranks,
                      {"scaling-rank", "--ranks", std::to_string(options.ranks), "--model",
                       options.model, "--batch-size", std::to_string(workload.batch_size),
                       "--lanes", std::to_string(options.lanes)});
  const auto membership = join_local_cluster(*group);
  {
    InMemoryTraining training(workload, {.strategy = "multi-worker-mirrored",
                                         .lanes = options.lanes,
                                         .membership = membership.get()});
    if (group->rank() == 0) {
      std::cout << json{{"event", "ready"},
                        {"description", std::to_string(options.ranks) + " processes, each " +
                                            training.description()},
                        {"pids", group->pids()}}
                       .dump()
                << std::endl;
    }
    try {
      serve(*group, training);
    } catch (...) {
      group->fail();
      throw;
    }
  }
  membership->leave();
}

}  // namespace syncopate::bench
