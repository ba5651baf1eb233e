// The figure of a map of strategies: a grid with a row for each variant and a column for each
// cluster. The fill of a cell shows the time to the target, divided by the shortest time of the
// column. A frame shows the result of a test: it marks the winner and the rows that cannot be
// distinguished from the winner.
#pragma once

#include "bench/compare/report/strategy_map.h"
#include "bench/plots/picture.h"

namespace syncopate::bench {

// Draws the grid of variants and clusters. kWide: for a page that is 1120 units wide, with the
// sentences below the columns. kNarrow: for a phone that is 358 units wide, without the sentences,
// which the page shows as a list.
Picture map_figure(const StrategyMap& map, FigureForm form);

}  // namespace syncopate::bench
