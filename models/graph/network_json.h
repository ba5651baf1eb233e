// Checks the JSON of a network's text before its nodes are read. Used by graph_parser.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

inline constexpr std::size_t kMostNodes = 10000;

// Returns the line, counted from 1, on which each node begins. path: of a network file; empty for
// the text of a checkpoint. Throws UsageError naming path and line: no JSON, no object with a name
// and nodes, a field that is given twice, more than kMostNodes nodes, values deep in one another.
std::vector<int> check_network_json(std::string_view text, const std::string& path);

}  // namespace syncopate
