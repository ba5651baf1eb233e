// Makes the report of a map of strategies, which compares the same variants on several clusters:
// the text for the terminal, the page, the figure and the data file.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "bench/compare/report/strategy_map.h"
#include "bench/plots/picture.h"

namespace syncopate::bench {

// Prints a table of the times of all variants on all clusters, then the strategies to use on each
// cluster, then the answer. The lines have at most 80 characters if there are four clusters.
void print_map(std::ostream& out, const StrategyMap& map);

// Draws the figure of a map: a grid of variants x clusters. The fill of a cell shows the time to
// the target, divided by the shortest time of the column. A frame shows the result of a test: it
// marks the winner and the rows that cannot be distinguished from the winner. kWide: for a page
// that is 1120 units wide, with the sentences below the columns. kNarrow: for a phone that is 358
// units wide, without the sentences, which the page shows as a list.
Picture map_figure(const StrategyMap& map, FigureForm form);

// Returns the page of the report, which is HTML and also well-formed XML. command: the comparison's
// command line.
std::string map_page(const StrategyMap& map, const std::string& command);

// Returns the contents of map.csv: a line for each variant on each cluster, with numbers in full
// precision. Source: RFC 4180, with \n as line end.
std::string map_csv(const StrategyMap& map);

// Writes report.html, map.svg and map.csv into the folder. Throws FileError.
void write_map_report(const std::filesystem::path& dir, const StrategyMap& map,
                      const std::string& command);

}  // namespace syncopate::bench
