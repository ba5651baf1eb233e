#include "bench/scaling/scaling_rounds.h"

#include <algorithm>
#include <chrono>

#include "bench/harness/machine_load.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;

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
  if (pids.empty()) return this_process_cpu_seconds();
  double seconds = 0.0;
  for (const pid_t pid : pids) seconds += other_process_cpu_seconds(pid);
  return seconds;
}

ScalingTurn take_turn(ScalingSide& side, int steps) {
  const double cpu_before = cpu_seconds_of(side);
  const Clock::time_point start = Clock::now();
  ScalingTurn turn = side.run(steps);
  turn.wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  turn.cpu_seconds = cpu_seconds_of(side) - cpu_before;
  return turn;
}

}  // namespace

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
