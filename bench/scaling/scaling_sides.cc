#include "bench/scaling/scaling_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/peer.h"
#include "models/base/errors.h"
#include "models/base/own_program.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class InProcess final : public ScalingSide {
 public:
  InProcess(const Workload& workload, const TrainingOptions& options)
      : training_(workload, options) {}

  ScalingTurn run(int steps) override { return train_turn(training_, steps); }
  std::vector<pid_t> pids() const override { return {}; }  // none: this process's CPU time counts
  std::string description() const override { return training_.description(); }

 private:
  WorkloadTraining training_;
};

class OtherProcesses final : public ScalingSide {
 public:
  explicit OtherProcesses(std::vector<std::string> command)
      : peer_(PeerOptions{.command = std::move(command)}) {}

  ScalingTurn run(int steps) override {
    const PeerAnswer answer = peer_.ask("run " + std::to_string(steps), steps);
    const json fields = json::parse(answer.text);
    return {.step_seconds = median(answer.seconds),
            .exposed_seconds = fields.value("exposed_seconds", 0.0),
            .communication_seconds = fields.value("communication_seconds", 0.0)};
  }
  std::vector<pid_t> pids() const override {
    std::vector<pid_t> pids = {peer_.pid()};
    for (const json& pid : json::parse(peer_.settings()).value("pids", json::array())) {
      if (pid.get<pid_t>() != peer_.pid()) pids.push_back(pid.get<pid_t>());
    }
    return pids;
  }
  std::string description() const override {
    return peer_.description() + (peer_.warning().empty() ? "" : "\nWARNING: " + peer_.warning());
  }

 private:
  Peer peer_;
};

std::vector<std::string> ddp_command(const ScalingOptions& options, const Workload& workload,
                                     int replicas, int lanes) {
  std::vector<std::string> command = split_command(options.peer_ddp);
  if (command.size() == 1) {
    const fs::path shim = own_program().parent_path() / "peers" / "libreno_shim.so";
    command.insert(command.end(), {peer_script("torch_ddp.py").string(), "--bind"});
    if (fs::exists(shim)) command.insert(command.end(), {"--preload", shim.string()});
  }
  command.insert(command.end(),
                 {"--serve", "--model", workload.model, "--batch-size",
                  std::to_string(workload.batch_size), "--optimizer", workload.optimizer,
                  "--replicas", std::to_string(replicas), "--threads", std::to_string(lanes)});
  return command;
}

std::unique_ptr<ScalingSide> make_side(const ScalingOptions& options, const std::string& strategy,
                                       const Workload& workload, int replicas, int lanes) {
  const std::int64_t batch = workload.batch_size * replicas;
  if (workload.data && batch > workload.data->train->size()) {
    throw UsageError(fmt::format(
        "batch of {} ({} replicas): --data {} has only {} samples to train on; give a smaller "
        "--batch-size-per-replica",
        batch, replicas, workload.data_flag, workload.data->train->size()));
  }
  if (find_strategy(strategy)->needs_other_tasks()) {
    std::vector<std::string> command = scaling_rank_words(workload, options.data, replicas, lanes);
    command.insert(command.begin(), own_program().string());
    return std::make_unique<OtherProcesses>(std::move(command));
  }
  return std::make_unique<InProcess>(
      workload, TrainingOptions{.strategy = strategy, .replicas = replicas, .lanes = lanes});
}

int steps_of_a_turn(const ScalingOptions& options, const Workload& workload,
                    std::int64_t batch_size) {
  if (options.steps_per_round > 0) return options.steps_per_round;
  const std::int64_t samples = workload.steps_per_round * workload.batch_size;
  const int steps = static_cast<int>(std::max<std::int64_t>(2, samples / batch_size));
  return options.quick ? std::max(2, steps / 4) : steps;
}

// Returns the CPU seconds that a side has used so far. All sides in this process share its time,
// but only one of them works during a turn.
double cpu_seconds_of(const ScalingSide& side) {
  const std::vector<pid_t> pids = side.pids();
  return pids.empty() ? this_process_cpu_seconds() : cpu_seconds_of_families(pids);
}

ScalingTurn take_turn(ScalingSide& side, int steps) {
  const double cpu_before = cpu_seconds_of(side);
  const auto start = SteadyClock::now();
  ScalingTurn turn = side.run(steps);
  turn.wall_seconds = seconds_since(start);
  turn.cpu_seconds = cpu_seconds_of(side) - cpu_before;
  return turn;
}

}  // namespace

ScalingTurn train_turn(WorkloadTraining& training, int steps) {
  const CommunicationTimes before = training.communication();
  std::vector<double> seconds = training.run(steps);
  const CommunicationTimes after = training.communication();
  const double num_steps = steps + 1;  // run() adds one untimed step
  const double middle = median(seconds);
  return {
      .steps = std::move(seconds),
      .step_seconds = middle,
      .exposed_seconds = (after.exposed_seconds - before.exposed_seconds) / num_steps,
      .communication_seconds = (after.under_way_seconds - before.under_way_seconds) / num_steps};
}

std::vector<std::string> scaling_rank_words(const Workload& workload, const WorkloadData& data,
                                            int ranks, int lanes) {
  std::vector<std::string> words = {"scaling-rank",
                                    "--ranks",
                                    std::to_string(ranks),
                                    "--model",
                                    workload.model,
                                    "--lanes",
                                    std::to_string(lanes),
                                    "--batch-size",
                                    std::to_string(workload.batch_size)};
  const std::vector<std::string> of_data = words_of(data);
  words.insert(words.end(), of_data.begin(), of_data.end());
  return words;
}

std::vector<ScalingEntry> make_grid_entries(const ScalingOptions& options, const Workload& workload,
                                            const std::vector<ScalingCombination>& combinations) {
  std::vector<ScalingEntry> entries;
  for (const ScalingCombination& c : combinations) {
    Workload share = workload;
    share.batch_size = batch_per_replica(options, workload.batch_size, c.replicas);
    entries.push_back({c.strategy, true, c.replicas, c.threads, share.batch_size * c.replicas,
                       make_side(options, c.strategy, share, c.replicas, c.threads)});
  }
  return entries;
}

std::vector<ScalingEntry> make_scaling_entries(const ScalingOptions& options,
                                               const Workload& workload) {
  std::vector<ScalingEntry> entries;
  int most = 1;
  for (const int replicas : options.replicas) {
    const int lanes = lanes_per_replica(options.threads_total, replicas);
    Workload share = workload;
    share.batch_size = batch_per_replica(options, workload.batch_size, replicas);
    most = std::max(most, replicas);
    const std::vector<std::string> strategies =
        replicas == 1 ? std::vector<std::string>{kOneDevice} : options.strategies;
    for (const std::string& strategy : strategies) {
      if (replicas > 1) require_scaling_strategy(strategy);
      entries.push_back({strategy, true, replicas, lanes, share.batch_size * replicas,
                         make_side(options, strategy, share, replicas, lanes)});
    }
  }
  if (!options.peer_ddp.empty()) {
    const int lanes = lanes_per_replica(options.threads_total, most);
    Workload share = workload;
    share.batch_size = batch_per_replica(options, workload.batch_size, most);
    entries.push_back({"PyTorch DDP", false, most, lanes, share.batch_size * most,
                       std::make_unique<OtherProcesses>(ddp_command(options, share, most, lanes))});
  }
  return entries;
}

ScalingResult measure_scaling(const ScalingOptions& options, const Workload& workload,
                              std::vector<ScalingEntry> entries) {
  ScalingResult result{workload, std::move(entries), {}, {}};
  result.turns.resize(result.entries.size());
  std::vector<Turn> turns;
  std::vector<pid_t> others;
  for (std::size_t i = 0; i < result.entries.size(); ++i) {
    const ScalingEntry& entry = result.entries[i];
    const int steps = steps_of_a_turn(options, workload, entry.batch_size);
    turns.emplace_back([&entry, &turn = result.turns[i], steps] {
      turn.push_back(take_turn(*entry.side, steps));
      return static_cast<double>(entry.batch_size) / turn.back().step_seconds;
    });
    const std::vector<pid_t> pids = entry.side->pids();
    others.insert(others.end(), pids.begin(), pids.end());
  }
  result.rounds = take_rounds(options.rounds, turns, others);
  return result;
}

Spread spread_of_turns(const ScalingResult& result, std::size_t entry,
                       double ScalingTurn::*number) {
  std::vector<double> values;
  for (const std::size_t round : quiet_rounds(result.rounds.foreign)) {
    values.push_back(result.turns[entry][round].*number);
  }
  return spread_of(values);
}

}  // namespace syncopate::bench
