#include "models/zoo/zoo.h"

namespace syncopate {

Graph mnist_cnn(const NetworkInput& input) {
  GraphBuilder build("mnist-cnn");
  NodeId x = build.input(input.sample_shape, input.input);
  x = build.conv2d(x, "conv1", 32, {.kernel_h = 3, .kernel_w = 3, .bias = true});
  x = build.relu(x);
  x = build.max_pool(x, {.window = 2, .stride = 2});
  x = build.flatten(x);
  x = build.relu(build.dense(x, "fc1", 64));
  return build.finish(build.dense(x, "fc2", input.classes));
}

}  // namespace syncopate
