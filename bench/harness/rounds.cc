#include "bench/harness/rounds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/harness/machine_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"

namespace syncopate::bench {
namespace {

std::string percent_text(double share) { return number_text(100.0 * share) + "%"; }

// Returns the cores' placement in each round, "near" or "far"; "?" for a round if foreign processes
// disturbed the measurement of the cores' bandwidth.
std::string describe_placement(const Rounds& rounds) {
  if (rounds.ring_gb_per_s.empty()) return "cores: only one, so there is no placement";
  std::string modes;
  for (std::size_t i = 0; i < rounds.ring_gb_per_s.size(); ++i) {
    const bool quiet = rounds.foreign[i] <= kForeignLimit;
    modes += (i == 0 ? "" : " ");
    modes += quiet ? placement_name(rounds.ring_gb_per_s[i]) : "?";
  }
  return "core to core: " + spread_text(spread_of(rounds.ring_gb_per_s)) +
         " GB/s (1 MB messages); per round: " + modes;
}

std::string describe_load(const Rounds& rounds) {
  std::string text = "foreign load of one core, per round:";
  std::size_t above = 0;
  for (const double share : rounds.foreign) {
    const bool is_above_limit = share > kForeignLimit;
    above += is_above_limit ? 1 : 0;
    text += " " + percent_text(share) + (is_above_limit ? "!" : "");
  }
  if (above == 0) return text;
  const std::string count = fmt::format("{} of {}", above, rounds.foreign.size());
  const bool dropped = quiet_rounds(rounds.foreign).size() < rounds.foreign.size();
  return text + "\n" +
         (dropped ? count + " rounds dropped: others used more than " + percent_text(kForeignLimit)
                  : "NOT QUIET: " + count + " rounds above " + percent_text(kForeignLimit) +
                        ", too few others to drop them; measure again");
}

}  // namespace

std::vector<double> Rounds::counted(std::size_t side) const {
  return select(sides.at(side), quiet_rounds(foreign));
}

Rounds take_rounds(int rounds, const std::vector<Turn>& turns,
                   const std::vector<pid_t>& other_side) {
  Rounds result;
  result.sides.resize(turns.size());
  ForeignLoadMeter meter(other_side);
  for (int round = 0; round < rounds; ++round) {
    if (const std::optional<double> ring = measure_core_ring())
      result.ring_gb_per_s.push_back(*ring);
    meter.take();
    for (std::size_t side = 0; side < turns.size(); ++side) {
      result.sides[side].push_back(turns[side]());
    }
    result.foreign.push_back(meter.take());
  }
  return result;
}

std::string describe_conditions(const Rounds& rounds) {
  return describe_placement(rounds) + "\n" + describe_load(rounds) + "\n";
}

nlohmann::json conditions_json(const Rounds& rounds) {
  return {{"quiet", is_quiet(rounds.foreign)},
          {"foreign_load_per_round", rounds.foreign},
          {"core_ring_gb_per_s_per_round", rounds.ring_gb_per_s}};
}

}  // namespace syncopate::bench
