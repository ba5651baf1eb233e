// The figure of a map: a grid, variants x clusters, coloured by the time to the target over the
// least of the column. Fill is data, a frame is a test: it marks the winner and what cannot be
// distinguished from it.
#pragma once

#include "bench/compare/report/strategy_map.h"
#include "bench/plots/picture.h"

namespace syncopate::bench {

// Draws the map for a page of 1120 units, with the sentences below the columns, or for a phone of
// 358 units; the page then shows the sentences as a list.
Picture map_figure(const StrategyMap& map, FigureForm form);

}  // namespace syncopate::bench
