// A map of strategies: the comparisons of the same variants on several clusters. Terminal text,
// figure, page and JSON are made from a StrategyMap.
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
  int seeds() const noexcept;  // the number of seeds of the row with the fewest seeds
};

// Makes a map. comparisons[i] is the comparison on clusters[i]. Throws FileError unless all
// comparisons have the same variants in the same order.
StrategyMap make_map(const std::vector<std::string>& clusters, std::vector<Comparison> comparisons);

}  // namespace syncopate::bench
