// Makes the sentences of the report of a StrategyMap, which compares the same variants on several
// clusters.
#pragma once

#include <optional>
#include <string>

#include "bench/compare/report/facts.h"
#include "bench/compare/report/strategy_map.h"

namespace syncopate::bench {

// Returns a sentence of at most kMostVerdictWords words that says which strategies to use on which
// cluster.
std::string map_verdict(const StrategyMap& map);
// Returns the most important warning about the comparisons of the map. If the warning does not
// apply to all clusters, its text begins with the name of the cluster.
std::optional<Fact> map_warning(const StrategyMap& map);
// If no cluster has an answer, returns a sentence that says what the user can do next to get an
// answer; otherwise "".
std::string map_next(const StrategyMap& map);
// Returns one sentence that says which variants ended less accurate than the most accurate variant.
std::string map_accuracy(const StrategyMap& map);

// The two lines above the column of a cluster in the map, such as "Slow worker" and "one of 8, 4x
// slower". For a cluster that the user defined, these are its name and its flags.
struct ColumnHead {
  std::string name;
  std::string facts;
};
ColumnHead column_head(const Outcome& column);

// Returns the conditions of the comparisons in the map, such as "Time to 95 % accuracy · 5 seeds ·
// simulated time".
std::string map_setting(const StrategyMap& map);

}  // namespace syncopate::bench
