#include "bench/plan/plan_rounds.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/harness/report.h"
#include "bench/virtual_clock/time_model.h"

namespace syncopate::bench {
namespace {

// Returns the bytes that a worker sends in an exchange.
std::int64_t exchanged_bytes(const TimingOptions& timing) {
  std::int64_t bytes = 0;
  for (const std::int64_t of_bucket : timing.buckets.bytes) {
    bytes +=
        timing.buckets.has_servers() ? of_bucket : ring_all_reduce_bytes(timing.workers, of_bucket);
  }
  return bytes;
}

// Returns the exchanges in a step, on average.
double exchanges_per_step(double summed_share, std::int64_t steps) {
  return summed_share + (1.0 - summed_share) / static_cast<double>(steps);
}

std::string text_of_megabytes(std::int64_t bytes) {
  return number_text(static_cast<double>(bytes) / 1e6) + " MB";
}

}  // namespace

PlannedRounds plan_rounds(const TimingOptions& timing, const TimingResult& rounds,
                          double summed_share, const RunMemory& memory) {
  const std::int64_t steps = timing.steps_per_exchange;
  return {.steps = steps,
          .seconds = static_cast<double>(timing.workers * steps) / rounds.gradients_per_second(),
          .summed_share = summed_share,
          .sent_bytes_per_step = static_cast<double>(exchanged_bytes(timing)) *
                                 exchanges_per_step(summed_share, steps),
          .memory = memory};
}

TimingResult timing_of_both(const TimingResult& sums, const TimingResult& rounds,
                            double summed_share, std::int64_t steps) {
  // Of a step of all workers.
  const double sums_seconds = summed_share / sums.updates_per_second;
  const double rounds_seconds =
      (1.0 - summed_share) / (rounds.updates_per_second * static_cast<double>(steps));
  const double seconds = sums_seconds + rounds_seconds;
  const double updates = exchanges_per_step(summed_share, steps);
  const auto mean = [&](double of_sums, double of_rounds) {
    return (sums_seconds * of_sums + rounds_seconds * of_rounds) / seconds;
  };
  return {.updates = sums.updates + rounds.updates,
          .updates_per_second = updates / seconds,
          .gradients_per_update = sums.gradients_per_update / updates,
          .relative_error =
              std::hypot(mean(sums.relative_error, 0.0), mean(0.0, rounds.relative_error)),
          .compute_share = mean(sums.compute_share, rounds.compute_share),
          .communication_share = mean(sums.communication_share, rounds.communication_share),
          .peers_share = mean(sums.peers_share, rounds.peers_share),
          .server_share = mean(sums.server_share, rounds.server_share)};
}

std::vector<std::string> headings_of_rounds() {
  return {"steps", "time", "steps before", "sent per step", "memory", "for the outer step"};
}

std::vector<std::string> cells_of(const PlannedRounds& rounds) {
  const RunMemory& memory = rounds.memory;
  return {std::to_string(rounds.steps),
          number_text(1e3 * rounds.seconds) + " ms",
          fmt::format("{:.0f}%", 100.0 * rounds.summed_share),
          number_text(rounds.sent_bytes_per_step / 1e3) + " KB",
          text_of_megabytes(memory.all()),
          text_of_megabytes(memory.replicas * memory.outer)};
}

nlohmann::json json_of(const PlannedRounds& rounds) {
  const RunMemory& memory = rounds.memory;
  return {{"steps", rounds.steps},
          {"seconds", rounds.seconds},
          {"summed_share", rounds.summed_share},
          {"sent_bytes_per_step", rounds.sent_bytes_per_step},
          {"memory_bytes", memory.all()},
          {"outer_bytes", memory.replicas * memory.outer}};
}

}  // namespace syncopate::bench
