// Chooses names for the nodes of a network file from the names in an ONNX file.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Returns the name for a layer, such as "layer1.0.conv1". weight: the name of the layer's weight,
// such as "layer1.0.conv1.weight", from which the layer's name is made. If `weight` has another
// form, the layer's name is made from `node`, such as "/layer1/layer1.0/conv1/Conv". If the node
// has no name, the layer's name is `op` in lower case. Characters that a network file does not
// allow are replaced.
std::string layer_name(std::string_view node, std::string_view weight, std::string_view op);

}  // namespace syncopate
