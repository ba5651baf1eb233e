// Implements the loop of every benchmark: in each round, the sides take turns. Also records the
// foreign load and the core placement of each round.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::bench {

// The results of all rounds of a benchmark: one number per round and side.
struct Rounds {
  std::vector<std::vector<double>> sides;  // indexed as sides[s][round]
  std::vector<double> foreign;  // share of one core that foreign processes used, by round
  // The result of measure_core_ring() in each round; empty on a machine with one core.
  std::vector<double> ring_gb_per_s;

  // Returns the numbers of one side in the rounds that quiet_rounds() (measure.h) selects.
  std::vector<double> counted(std::size_t side) const;
};

// A function that runs one turn of a side and returns the number that it measured, such as a time.
// The number has the same unit in all rounds.
using Turn = std::function<double()>;

// Runs the rounds of a benchmark: runs one turn of each side in order, and repeats this `rounds`
// times. other_side: see ForeignLoadMeter; the CPU time of these processes and of their descendants
// is not foreign load. Throws what a turn throws, and FileError when /proc cannot be read.
Rounds take_rounds(int rounds, const std::vector<Turn>& turns,
                   const std::vector<pid_t>& other_side);

// Returns a text on how reliable the numbers are: core placement, foreign load, and the number of
// rounds that were dropped because of foreign load.
std::string describe_conditions(const Rounds& rounds);
// Returns the state of the machine during the rounds as JSON: {"quiet": true or false,
// "foreign_load_per_round": [...], "core_ring_gb_per_s_per_round": [...]}. "quiet" is the result of
// is_quiet() (measure.h). The arrays are Rounds::foreign and Rounds::ring_gb_per_s.
nlohmann::json conditions_json(const Rounds& rounds);

}  // namespace syncopate::bench
