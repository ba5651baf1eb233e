// A map of strategies: the same variants on several clusters, one comparison for each. Terminal,
// figure, page and JSON are made from it.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/outcome.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

struct StrategyMap {
  std::vector<Outcome> columns;  // not empty; all have the same rows

  const Rows& rows() const noexcept { return columns.front().rows; }
  const Comparison& first() const noexcept { return columns.front().comparison; }
  int seeds() const noexcept;  // of the row with the fewest
};

// Returns the map of these comparisons, which have the same variants in the same order. Throws
// FileError if they do not.
StrategyMap make_map(const std::vector<std::string>& clusters, std::vector<Comparison> comparisons);

}  // namespace syncopate::bench
