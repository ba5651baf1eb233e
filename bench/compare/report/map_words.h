// The sentences of a map, made from its numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/facts.h"
#include "bench/compare/report/strategy_map.h"

namespace syncopate::bench {

// Returns what to use on which cluster, in at most kMostVerdictWords.
std::string map_verdict(const StrategyMap& map);
// Returns the most important warning; one that does not hold on all clusters begins with the name
// of its cluster.
std::optional<Fact> map_warning(const StrategyMap& map);
// Returns what would give an answer if no cluster has one; "" otherwise.
std::string map_next(const StrategyMap& map);
// Returns one sentence that says which variants ended less accurate.
std::string map_accuracy(const StrategyMap& map);

// The head of a column and the line under it: "Slow worker" and "one of 8, 4x slower"; for a
// cluster of the user's own its name and its flags.
struct ColumnHead {
  std::string name;
  std::string facts;
};
ColumnHead column_head(const Outcome& column);

// Returns the conditions of the map, such as "Time to 95 % accuracy · 5 seeds · simulated time".
std::string map_setting(const StrategyMap& map);

}  // namespace syncopate::bench
