// Names for the nodes of a network file, from the names in an ONNX file.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Returns the name of a layer: "layer1.0.conv1" for a weight "layer1.0.conv1.weight", or for a node
// "/layer1/layer1.0/conv1/Conv" whose weight has another name, or otherwise its operator's name in
// lower case. Letters that a network file does not allow are replaced.
std::string layer_name(std::string_view node, std::string_view weight, std::string_view op);

}  // namespace syncopate
