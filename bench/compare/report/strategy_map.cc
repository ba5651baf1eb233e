#include "bench/compare/report/strategy_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {

int StrategyMap::seeds() const noexcept {
  int least = std::numeric_limits<int>::max();
  for (const Outcome& column : columns) {
    for (const VariantSummary& row : column.rows) least = std::min(least, row.done);
  }
  return least;
}

StrategyMap make_map(const std::vector<std::string>& clusters,
                     std::vector<Comparison> comparisons) {
  StrategyMap map;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    map.columns.push_back(outcome_of(clusters.at(i), std::move(comparisons[i])));
    if (std::ranges::equal(map.rows(), map.columns.back().rows, {}, &VariantSummary::name,
                           &VariantSummary::name)) {
      continue;
    }
    throw FileError(
        fmt::format("the comparisons on {} and {} have other variants; repeat the "
                    "comparison in another folder",
                    clusters.front(), clusters[i]));
  }
  return map;
}

}  // namespace syncopate::bench
