// Checks the JSON of a network's text before its nodes are read. Used by graph_parser.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

inline constexpr std::size_t kMostNodes = 10000;

// Returns the line, counted from 1, on which each node begins. path: the path of a network file, or
// "" for the text of a checkpoint. Throws UsageError, naming path and line, in these cases: the
// text is not JSON, or not an object with a name and nodes; a field occurs twice; there are more
// than kMostNodes nodes; values are nested too deep.
std::vector<int> check_network_json(std::string_view text, const std::string& path);

}  // namespace syncopate
