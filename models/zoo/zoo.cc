#include "models/zoo/zoo.h"

#include <fmt/format.h>

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kNetworks = {
    NetworkRow{"mnist-cnn", "conv 32, pool, dense 64: the network of the tf.distribute guides",
               mnist_cnn},
    NetworkRow{"mlp", "one hidden layer of 128", mlp},
    NetworkRow{"resnet20", "He et al. 2016 for small images, 0.27 M parameters", resnet20},
    NetworkRow{"resnet56", "He et al. 2016 for small images, 0.85 M parameters", resnet56},
    NetworkRow{"resnet50", "He et al. 2016 for images of 224x224, 25.6 M parameters", resnet50},
    NetworkRow{"resnet50-v1", "Keras's ResNet50, 25.6 M parameters", resnet50_v1},
};

}  // namespace

Graph mnist_cnn(const NetworkInput& input) {
  GraphBuilder build("mnist-cnn");
  NodeId x = build.input(input.sample_shape, input.input);
  x = build.conv2d(x, "conv1", 32, {.kernel_h = 3, .kernel_w = 3, .bias = true});
  x = build.relu(x);
  x = build.max_pool(x, {.window = 2, .stride = 2});
  x = build.flatten(x);
  x = build.relu(build.dense(x, "fc1", 64));
  return build.finish(add_classifier(build, x, "fc2", input));
}

Graph mlp(const NetworkInput& input) {
  GraphBuilder build("mlp");
  NodeId x = build.flatten(build.input(input.sample_shape, input.input));
  x = build.relu(build.dense(x, "fc1", 128));
  return build.finish(add_classifier(build, x, "fc2", input));
}

NodeId add_classifier(GraphBuilder& build, NodeId x, const std::string& name,
                      const NetworkInput& input) {
  if (input.head.empty()) return build.dense(x, name, input.classes);
  int index = 0;
  for (const int features : input.head) {
    x = build.relu(build.dense(x, fmt::format("{}.{}", name, index), features));
    index += 2;
  }
  return build.dense(x, fmt::format("{}.{}", name, index), input.classes);
}

std::span<const NetworkRow> networks() noexcept { return kNetworks; }

Graph build_network(std::string_view name, const NetworkInput& input) {
  std::string known;
  for (const NetworkRow& row : kNetworks) {
    if (row.name == name) return row.build(input);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError(fmt::format("--model {}: no such network; choose one of {}", name, known));
}

}  // namespace syncopate
