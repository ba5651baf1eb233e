// Chooses names for the nodes of a network file from the names in an ONNX file.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Returns the name of a layer, such as "layer1.0.conv1". It is made of the name of its weight,
// "layer1.0.conv1.weight". If the weight's name has another form, it is made of the name of the
// node, "/layer1/layer1.0/conv1/Conv"; without such a name, it is the operator's name in lower
// case. Characters that a network file does not allow are replaced.
std::string layer_name(std::string_view node, std::string_view weight, std::string_view op);

}  // namespace syncopate
