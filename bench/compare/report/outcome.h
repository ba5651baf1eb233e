// A comparison with its answer and the numbers of its rows, from which terminal, figure, page and
// JSON are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/answer.h"
#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

enum class RowState : std::uint8_t {
  kWinner,   // the only row to use
  kTie,      // cannot be told apart from the soonest
  kSlower,   // all runs reached the target, later
  kMissed,   // some runs did not reach the target
  kBusy,     // other programs disturbed the runs
  kNoResult  // runs failed or are missing
};

// What a row shows.
struct RowOutcome {
  RowState state = RowState::kNoResult;
  double seconds = 0.0;  // geometric mean of the times to the target
  double ratio = 0.0;    // over the least of all rows
  int reached = 0;       // runs that reached the target
  int runs = 0;
  std::optional<TimeRatio> over_best{};  // the ratio with its interval; empty for the soonest
};

// A comparison with its answer.
struct Outcome {
  std::string cluster;  // its name, in a map; "" otherwise
  Comparison comparison;
  Rows rows;
  Claims claims;
  Answer answer;
  std::vector<RowOutcome> cells;  // one for each row
  std::optional<std::size_t> soonest{};
};

// Returns the rows, the soonest first; those without a time in the order of the command line.
std::vector<std::size_t> sorted_rows(const Outcome& outcome);

// Computes the outcome of a comparison.
Outcome outcome_of(std::string cluster, Comparison comparison);

}  // namespace syncopate::bench
