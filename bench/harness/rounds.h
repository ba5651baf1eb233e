// Implements the loop of every benchmark. In each round the sides take turns; the foreign load and
// the core placement of each round are recorded.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::bench {

// The results of the rounds: one number per round and side.
struct Rounds {
  std::vector<std::vector<double>> sides;  // indexed as sides[s][round]
  std::vector<double> foreign;  // Share of one core that foreign processes used, per round.
  // Core-to-core bandwidth per round; empty on a machine with one core.
  std::vector<double> ring_gb_per_s;

  // Returns sides[s] for the rounds that quiet_rounds (measure.h) selects.
  std::vector<double> counted(std::size_t side) const;
};

// Runs one side's turn and returns its number for the round, in one unit for all rounds.
using Turn = std::function<double()>;

// Runs all turns in order, `rounds` times. The time of the processes in `other_side` and of their
// descendants does not count as foreign load. Throws what a turn throws, and FileError when /proc
// cannot be read.
Rounds take_rounds(int rounds, const std::vector<Turn>& turns,
                   const std::vector<pid_t>& other_side);

// Describes how trustworthy the numbers are: core placement, foreign load, and the number of rounds
// that were dropped because of it.
std::string describe_conditions(const Rounds& rounds);
// Returns JSON: {"quiet":B, "foreign_load_per_round":[...], "core_ring_gb_per_s_per_round":[...]}.
nlohmann::json conditions_json(const Rounds& rounds);

}  // namespace syncopate::bench
