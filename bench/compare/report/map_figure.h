// The figure of a map: a grid, variants x clusters, coloured by the time to the target over the
// least of the column. Fill is data, a frame is a test: it marks the winner and what cannot be told
// apart from it.
#pragma once

#include <string>

#include "bench/compare/report/strategy_map.h"

namespace syncopate::bench {

// Returns the <svg> element of a page of 1120 units, with the sentences below the columns.
std::string wide_map(const StrategyMap& map);
// Returns the element for a phone, of 358 units; the page shows the sentences as a list.
std::string narrow_map(const StrategyMap& map);
// Returns the wide picture as a file of its own, fit for a paper.
std::string map_picture(const StrategyMap& map);

}  // namespace syncopate::bench
