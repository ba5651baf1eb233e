// Chooses names for the nodes of a network file from the names in an ONNX file.
#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "deploy/onnx/onnx_layer_weights.h"
#include "models/base/lower_case.h"

namespace syncopate {
namespace {

constexpr std::size_t kLongestLayerName = 150;

// Returns the last part of a node's name of TensorFlow or PyTorch if it is an operator's, such as
// "/Conv" of "/layer1/conv1/Conv".
std::string_view without_operator(std::string_view name) {
  constexpr std::array kOperators = {
      "conv",   "conv2d",  "convolution", "convtranspose", "depthwise",          "gemm",
      "matmul", "biasadd", "dropout",     "addv",          "batchnormalization", "fusedbatchnormv"};
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return name;
  std::string last;
  for (const char letter : name.substr(slash + 1)) {
    if (letter == '_') break;
    if (std::isalpha(static_cast<unsigned char>(letter)) != 0) {
      last += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  if (last == "convd") last = "conv2d";
  return std::ranges::find(kOperators, last) != kOperators.end() ? name.substr(0, slash) : name;
}

// Turns "/layer1/layer1.0/conv1" into "layer1.0.conv1": a part that the next one repeats is left
// out, and letters that a network file does not allow are replaced.
std::string valid_name(std::string_view text) {
  std::vector<std::string> parts = {""};
  for (const char letter : text.substr(0, kLongestLayerName)) {
    const bool is_allowed = std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                            letter == '_' || letter == '-' || letter == '.';
    if (letter == '/') {
      parts.emplace_back();
    } else {
      parts.back() += is_allowed ? letter : '_';
    }
  }
  std::string name;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_repeated = i + 1 < parts.size() && parts[i + 1].starts_with(parts[i] + ".");
    if (parts[i].empty() || parts[i] == "StatefulPartitionedCall" || is_repeated) continue;
    name += (name.empty() ? "" : ".") + parts[i];
  }
  return name.starts_with("optimizer.") ? "_" + name : name;
}

}  // namespace

std::string layer_name(std::string_view node, std::string_view weight, std::string_view op) {
  constexpr std::string_view kSuffix = ".weight";
  std::string name;
  if (weight.ends_with(kSuffix)) {
    name = valid_name(weight.substr(0, weight.size() - kSuffix.size()));
  }
  if (name.empty()) name = valid_name(without_operator(node));
  if (name.empty()) name = valid_name(lower_case(op));
  return name.empty() ? "layer" : name;
}

}  // namespace syncopate
