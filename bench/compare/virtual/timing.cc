#include "bench/compare/virtual/timing.h"

#include <algorithm>

#include "bench/compare/virtual/step_times.h"
#include "bench/compare/virtual/timing_window.h"
#include "bench/compare/virtual/timing_without_step.h"
#include "models/base/errors.h"
#include "ps/shard/consistency_rule.h"
#include "strategies/strategy_options.h"

namespace syncopate::bench {
namespace {

constexpr std::int64_t kFewestRounds = 10;  // gradients of each worker
constexpr std::int64_t kWarmUpRounds = 4;
constexpr std::int64_t kMostWarmUpRounds = 100;

void check_options(const TimingOptions& options) {
  ps::check_consistency(options.consistency);
  check(!options.server_bytes.empty(), "a network has bytes");
  const int backups = options.consistency.backup_workers;
  if (backups >= options.workers) {
    throw UsageError("backup:" + std::to_string(backups) + ": of " +
                     std::to_string(options.workers) + " workers at least one must be waited for");
  }
}

TimingResult simulate_in_step(const TimingOptions& options, std::int64_t rounds) {
  StepTimes times({.strategy = options.strategy,
                   .workers = options.workers,
                   .value_bytes = options.server_bytes,
                   .has_servers = options.has_servers},
                  options.trouble, options.seed);
  TimingWindow window(kWarmUpRounds, rounds);
  for (std::int64_t step = 1; !window.is_over(); ++step) {
    const VirtualTime end = times.step(step, options.server_bytes);
    window.update(end, times.accounts());
  }
  TimingResult result = window.result();
  result.gradients_per_update = options.workers;
  return result;
}

// Workers drift apart like random walkers until the bound of ssp stops them: that takes about its
// square of rounds.
std::int64_t warm_up_rounds(const TimingOptions& options) {
  const std::int64_t bound = options.consistency.consistency == ps::Consistency::kSsp
                                 ? options.consistency.max_staleness
                                 : 0;
  return std::min(kWarmUpRounds + bound * bound, kMostWarmUpRounds);
}

}  // namespace

TimingResult simulate_timing(const TimingOptions& options) {
  check_options(options);
  const std::int64_t rounds =
      std::max(kFewestRounds, (options.gradients + options.workers - 1) / options.workers);
  if (is_synchronous(options.consistency)) return simulate_in_step(options, rounds);
  const bool sums = options.consistency.consistency == ps::Consistency::kSync;
  const std::int64_t updates_per_round = sums ? 1 : options.workers;
  TimingWindow window(warm_up_rounds(options) * updates_per_round, rounds * updates_per_round);
  simulate_without_step(options, window);
  TimingResult result = window.result();
  if (sums) result.gradients_per_update = options.workers - options.consistency.backup_workers;
  return result;
}

}  // namespace syncopate::bench
