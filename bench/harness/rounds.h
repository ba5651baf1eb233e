// The frame of every benchmark: rounds in which the sides take turns, with the load of others and
// the placement of the cores noted for each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/machine_load.h"

namespace syncopate::bench {

// One number per round and side.
struct Rounds {
  std::vector<std::vector<double>> sides;  // sides[s][round]
  std::vector<double> foreign;             // share of one core, per round
  std::vector<double> ring_gb_per_s;       // core to core, per round; empty on one core

  // sides[s] of the rounds that count (measure.h, quiet_rounds).
  std::vector<double> counted(std::size_t side) const;
};

// One side's turn: its number for this round, in the same unit every time.
using Turn = std::function<double()>;

// The sides take their turns in order, `rounds` times. other_side: processes whose time is ours,
// not foreign load. Throws what a turn throws, and FileError when /proc cannot be read.
Rounds take_rounds(int rounds, const std::vector<Turn>& turns,
                   const std::vector<pid_t>& other_side);

// What a reader must know before believing the numbers: placement, load of others and how many
// rounds it cost.
std::string describe_conditions(const Rounds& rounds);

}  // namespace syncopate::bench
