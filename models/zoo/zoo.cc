#include "models/zoo/zoo.h"

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array kNetworks = {
    NetworkRow{"mnist-cnn", "conv 32, pool, dense 64: the network of the tf.distribute guides",
               mnist_cnn},
    NetworkRow{"mlp", "one hidden layer of 128", mlp},
    NetworkRow{"resnet20", "He et al. 2016 for small images, 0.27 M parameters", resnet20},
    NetworkRow{"resnet56", "the same, 56 layers, 0.85 M parameters", resnet56},
    NetworkRow{"resnet50", "He et al. 2016 for images of 224x224, 25.6 M parameters", resnet50},
};

}  // namespace

std::span<const NetworkRow> networks() noexcept { return kNetworks; }

Graph build_network(std::string_view name, const NetworkInput& input) {
  std::string known;
  for (const NetworkRow& row : kNetworks) {
    if (row.name == name) return row.build(input);
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("--model " + std::string(name) + ": no such network; choose one of " + known);
}

}  // namespace syncopate
