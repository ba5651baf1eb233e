// A map of strategies: the same variants on several clusters, one comparison for each. Terminal,
// figure, page and JSON are made from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/answer.h"
#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

enum class CellState : std::uint8_t {
  kWinner,   // the only row to use
  kTie,      // cannot be told apart from the soonest
  kSlower,   // all runs reached the target, later
  kMissed,   // some runs did not reach the target
  kBusy,     // other programs disturbed the runs
  kNoResult  // runs failed or are missing
};

// A variant on a cluster.
struct MapCell {
  CellState state = CellState::kNoResult;
  double seconds = 0.0;  // geometric mean of the times to the target
  double ratio = 0.0;    // over the least of the column
  int reached = 0;       // runs that reached the target
  int runs = 0;
  std::optional<TimeRatio> over_best{};  // the ratio with its interval; empty for the soonest
};

// The comparison on one cluster.
struct MapColumn {
  std::string cluster;
  Comparison comparison;
  Rows rows;
  Claims claims;
  Answer answer;
  std::vector<MapCell> cells;  // one for each row
  std::optional<std::size_t> soonest{};
};

struct StrategyMap {
  std::vector<MapColumn> columns;  // not empty; all have the same rows

  const Rows& rows() const noexcept { return columns.front().rows; }
  const Comparison& first() const noexcept { return columns.front().comparison; }
  int seeds() const noexcept;    // of the row with the fewest
  int workers() const noexcept;  // of the row with the most
};

// Returns the map of these comparisons, which have the same variants in the same order. Throws
// FileError if they do not.
StrategyMap make_map(const std::vector<std::string>& clusters, std::vector<Comparison> comparisons);

}  // namespace syncopate::bench
