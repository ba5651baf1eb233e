// The JSON of a network's text. Used by graph_parser.cc.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph/network_input.h"

namespace syncopate {

inline constexpr std::size_t kMostNodes = 10000;

// A network's text as JSON: an object with a name and nodes.
struct NetworkText {
  nlohmann::ordered_json json;
  std::string path;                    // of a network file
  std::vector<int> lines;              // of each node, counted from 1
  const NetworkInput* data = nullptr;  // null: the text is that of a checkpoint
};

// Parses a text into network.json and network.lines. Throws UsageError naming path and line: no
// JSON, another form, a field that is given twice, more than kMostNodes nodes.
void read_network_json(std::string_view text, NetworkText& network);

}  // namespace syncopate
