// The report of a map: the table and the sentences of the terminal, the page, the picture and the
// data file.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "bench/compare/report/strategy_map.h"

namespace syncopate::bench {

// Prints the grid as a table, then what to use on each cluster, then the answer: at most 80 columns
// for four clusters.
void print_map(std::ostream& out, const StrategyMap& map);

// Returns the page, which is HTML and also well-formed XML. command: the comparison's command line.
std::string map_page(const StrategyMap& map, const std::string& command);

// Returns map.csv: a line for each cell, with full digits. Source: RFC 4180, with \n for a line
// end.
std::string map_csv(const StrategyMap& map);

// Writes report.html, map.svg and map.csv into the folder. Throws FileError.
void write_map_report(const std::filesystem::path& dir, const StrategyMap& map,
                      const std::string& command);

}  // namespace syncopate::bench
