#include "models/zoo/zoo.h"

namespace syncopate {

Graph mlp(const NetworkInput& input) {
  GraphBuilder build("mlp");
  NodeId x = build.flatten(build.input(input.sample_shape, input.input));
  x = build.relu(build.dense(x, "fc1", 128));
  return build.finish(build.dense(x, "fc2", input.classes));
}

}  // namespace syncopate
