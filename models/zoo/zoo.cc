#include "models/zoo/zoo.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/graph/graph_text.h"

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
    NetworkRow{"mobilenet-v2", "Sandler et al. 2018 for images of 224x224, 3.5 M parameters",
               mobilenet_v2},
    NetworkRow{"vgg16", "Simonyan and Zisserman 2014 for images of 224x224, 138 M parameters",
               vgg16},
    NetworkRow{"fcn", "label maps: 8 convolutions, 0.12 M parameters", fcn, true},
    NetworkRow{"unet", "label maps: Ronneberger et al. 2015, 31 M parameters", unet, true},
};

// Returns what a file of another program is and how its network is trained; empty for other names.
std::string why_no_network_file(std::string_view path) {
  const auto ends_with = [&](std::initializer_list<std::string_view> suffixes) {
    return std::ranges::any_of(suffixes, [&](auto each) { return path.ends_with(each); });
  };
  constexpr std::string_view kThen =
      "net.json net.safetensors`, and give --model file:net.json --init-from net.safetensors";
  if (ends_with({".onnx"})) {
    return fmt::format("this is an ONNX file; run `syncopate convert {} {}", path, kThen);
  }
  if (ends_with({".py", ".pt", ".pth", ".ckpt", ".keras", ".h5"})) {
    return fmt::format(
        "networks of PyTorch and Keras are read as ONNX files; export one, as `syncopate convert "
        "--help` shows, run `syncopate convert model.onnx {}",
        kThen);
  }
  if (ends_with({".safetensors"})) {
    return fmt::format("this is a file of weights; give --init-from {} and the --model it fits",
                       path);
  }
  return "";
}

// Returns the text of a file of ordinary size. Throws FileError.
std::string read_network_file(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("network file {}: {}", path, why));
  };
  // A pipe that no program writes to must not block here.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> chunk{};
  while (true) {
    const ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0) fail(std::strerror(errno));
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) fail(fmt::format("larger than {} MiB", kMostBytes >> 20));
  }
}

}  // namespace

std::string why_no_network(std::string_view model) {
  if (model.ends_with(".json")) return fmt::format("for a network file, give file:{}", model);
  return why_no_network_file(model);
}

Graph mnist_cnn(const NetworkInput& input) {
  GraphBuilder build("mnist-cnn");
  NodeId x = build.input(input.sample_shape, input.input);
  x = build.conv2d(x, "conv1", 32, {.kernel_h = 3, .kernel_w = 3, .bias = true});
  x = build.relu(x);
  x = build.max_pool(x, {.window = 2, .stride = 2});
  x = build.flatten(x);
  x = build.relu(build.dense(x, "fc1", 64));
  return build.finish(add_classifier(build, x, "fc2", input), input.loss());
}

Graph mlp(const NetworkInput& input) {
  GraphBuilder build("mlp");
  NodeId x = build.flatten(build.input(input.sample_shape, input.input));
  x = build.relu(build.dense(x, "fc1", 128));
  return build.finish(add_classifier(build, x, "fc2", input), input.loss());
}

std::span<const NetworkRow> networks() noexcept { return kNetworks; }

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  for (const NetworkRow& row : kNetworks) names.push_back(row.name);
  names.push_back("file:NET.json");
  return names;
}

Graph build_network(std::string_view model, const NetworkInput& input) {
  if (model.starts_with(kNetworkFile)) {
    const std::string path(model.substr(kNetworkFile.size()));
    if (const std::string why = why_no_network_file(path); !why.empty()) {
      throw UsageError(fmt::format("--model {}: {}", model, why));
    }
    return parse_network_file(read_network_file(path), path, input);
  }
  const auto row = std::ranges::find(kNetworks, model, &NetworkRow::name);
  if (row != kNetworks.end()) return row->build(input);
  if (const std::string why = why_no_network(model); !why.empty()) {
    throw UsageError(fmt::format("--model {}: {}", model, why));
  }
  throw UsageError(fmt::format("--model {}: no such network; choose one of {}", model,
                               fmt::join(network_names(), ", ")));
}

}  // namespace syncopate
