#include "models/graph/network_input.h"

#include <fmt/format.h>

namespace syncopate {

NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input, Init init) {
  if (input.head.empty()) return build.dense(x, name, input.classes, init);
  int index = 0;
  for (const int features : input.head) {
    x = build.relu(build.dense(x, fmt::format("{}.{}", name, index), features, init));
    index += 2;
  }
  return build.dense(x, fmt::format("{}.{}", name, index), input.classes, init);
}

}  // namespace syncopate
