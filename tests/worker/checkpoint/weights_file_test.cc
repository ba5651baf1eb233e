// Tests of --init-from: weights as torchvision, timm and Keras name them, and checkpoints.
#include "worker/checkpoint/weights_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "tests/worker/checkpoint/safetensors_file.h"
#include "worker/checkpoint/element_types.h"
#include "worker/checkpoint/tensor_names.h"

namespace syncopate {
namespace {

constexpr std::uint64_t kSeed = 7;

std::uint64_t checksum(std::span<const float> values) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(values.data()), values.size_bytes());
}

// Returns values that are exact in half precision: multiples of 1/1024 in [-1, 1).
std::vector<float> exact_values(const std::string& name, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::size_t k = name.size() * 131 + static_cast<unsigned char>(name.back());
  for (float& value : values) {
    value = static_cast<float>(static_cast<int>(k % 2048) - 1024) / 1024.0F;
    k += 37;
  }
  return values;
}

// Returns the bytes of these values, from exact_values(), in half precision.
std::string halves(const std::vector<float>& values) {
  static const auto kHalves = [] {
    std::array<std::uint16_t, 2048> halves{};
    constexpr std::uint32_t kMinusZero = 0x8000;
    for (std::uint32_t half = 0; half < 0x10000U; ++half) {
      if (half == kMinusZero) continue;
      const double scaled = 1024.0 * half_to_float(static_cast<std::uint16_t>(half)) + 1024.0;
      if (!(scaled >= 0.0 && scaled < 2048.0) || scaled != std::floor(scaled)) continue;
      halves.at(static_cast<std::size_t>(scaled)) = static_cast<std::uint16_t>(half);
    }
    return halves;
  }();
  std::vector<std::uint16_t> stored;
  stored.reserve(values.size());
  for (const float value : values) {
    stored.push_back(kHalves.at(static_cast<std::size_t>(1024.0F * value + 1024.0F)));
  }
  return bytes_of(stored);
}

Snapshot blank(const Graph& graph) {
  return {.values = make_host_tensor({graph.parameter_layout().total()}, DType::kF32),
          .slots = {},
          .state = make_host_tensor({graph.state_layout().total()}, DType::kF32)};
}

Graph network(const std::string& model, int classes, std::vector<int> head = {}) {
  return build_network(model,
                       {.sample_shape = {32, 32, 3}, .classes = classes, .head = std::move(head)});
}

class WeightsFile : public testing::Test {
 protected:
  std::string load(const Graph& graph) {
    snapshot_ = blank(graph);
    return load_weights(path_, graph, kSeed, snapshot_);
  }
  std::string error_of(const Graph& graph) {
    return message_of<Error>([&] { load(graph); });
  }
  std::string usage_error_of(const Graph& graph) {
    return message_of<UsageError>([&] { load(graph); });
  }
  void write(const std::vector<RawTensor>& tensors) {
    write_file(path_, safetensors_bytes(tensors));
  }
  std::vector<float> in_file_order(const Graph& graph, std::size_t i) const {
    const ArenaLayout layout = graph.parameter_layout();
    const auto memory = snapshot_.values.f32().subspan(static_cast<std::size_t>(layout.offset(i)),
                                                       static_cast<std::size_t>(layout.size(i)));
    std::vector<float> values(memory.size());
    memory_to_file_order(graph.parameters[i], memory, values);
    return values;
  }
  std::span<const float> state(const Graph& graph, std::size_t i) const {
    const ArenaLayout layout = graph.state_layout();
    return snapshot_.state.f32().subspan(static_cast<std::size_t>(layout.offset(i)),
                                         static_cast<std::size_t>(layout.size(i)));
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "weights.safetensors";
  Snapshot snapshot_;
};

// Returns a file as torchvision.models.resnet50(num_classes).half().state_dict() has it, with the
// running statistics in f32 and a counter per batch norm.
std::vector<RawTensor> torchvision_tensors(const Graph& graph) {
  std::vector<RawTensor> tensors;
  for (const Parameter& p : graph.parameters) {
    tensors.push_back(
        {p.name, "F16", p.file_shape, halves(exact_values(p.name, num_elements(p.file_shape)))});
  }
  for (const State& s : graph.state) {
    tensors.push_back(
        {s.name, "F32", s.shape, bytes_of(exact_values(s.name, num_elements(s.shape)))});
    if (!s.name.ends_with("running_var")) continue;
    tensors.push_back({s.name.substr(0, s.name.rfind('.')) + ".num_batches_tracked",
                       "I64",
                       {},
                       bytes_of<std::int64_t>({1234})});
  }
  return tensors;
}

TEST_F(WeightsFile, OfTorchvisionGivesEveryTensorOfResnet50) {
  write(torchvision_tensors(network("resnet50", 10)));
  const Graph graph = network("resnet50", 10);
  EXPECT_EQ(load(graph), "from weights.safetensors: 267 tensors; not used: 53 num_batches_tracked");
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& p = graph.parameters[i];
    EXPECT_EQ(checksum(in_file_order(graph, i)),
              checksum(exact_values(p.name, num_elements(p.shape))))
        << p.name;
  }
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    const State& s = graph.state[i];
    EXPECT_EQ(checksum(state(graph, i)), checksum(exact_values(s.name, num_elements(s.shape))))
        << s.name;
  }
}

Graph map_network(const char* model, int classes) {
  return build_network(model,
                       {.sample_shape = {32, 32, 3}, .classes = classes, .target_shape = {32, 32}});
}

TEST_F(WeightsFile, LeavesTheLayerThatGivesLabelMapsFreshWhereItsClassesAreOthers) {
  for (const char* model : {"fcn", "unet"}) {
    write(torchvision_tensors(map_network(model, 3)));
    const Graph graph = map_network(model, 5);
    const std::string note = load(graph);
    const std::string last = graph.parameters.back().name;
    EXPECT_TRUE(contains(note, "; fresh: ", last + " "));
    EXPECT_FALSE(contains(note, graph.parameters.front().name));
  }
}

// Keras has the output channels of kernels last: element [rest, k] of a kernel is [k, rest] here.
TEST_F(WeightsFile, OfKerasGivesEveryTensorOfResnet50V1) {
  const Graph graph = network("resnet50-v1", 10);
  std::vector<RawTensor> tensors;
  for (const Parameter& p : graph.parameters) {
    Shape shape = p.shape;
    std::rotate(shape.begin(), shape.begin() + 1, shape.end());
    const std::string name = keras_name(p.name);
    tensors.push_back({name, "F32", shape, bytes_of(exact_values(name, num_elements(shape)))});
  }
  for (const State& s : graph.state) {
    const std::string name = keras_name(s.name) + ":0";  // as Keras 2 has it
    tensors.push_back({name, "F32", s.shape, bytes_of(exact_values(name, num_elements(s.shape)))});
  }
  write(tensors);
  EXPECT_EQ(load(graph), "from weights.safetensors: 320 tensors");
  const ArenaLayout layout = graph.parameter_layout();
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& p = graph.parameters[i];
    const auto count = static_cast<std::size_t>(layout.size(i));
    const auto outputs = static_cast<std::size_t>(p.shape.front());
    const std::vector<float> kernel = exact_values(keras_name(p.name), layout.size(i));
    std::vector<float> expected(count);
    for (std::size_t j = 0; j < count; ++j) {
      expected[(j % outputs) * (count / outputs) + j / outputs] = kernel[j];
    }
    EXPECT_EQ(
        checksum(snapshot_.values.f32().subspan(static_cast<std::size_t>(layout.offset(i)), count)),
        checksum(expected))
        << p.name;
  }
  for (std::size_t i = 0; i < graph.state.size(); ++i) {
    const std::string name = keras_name(graph.state[i].name) + ":0";
    EXPECT_EQ(checksum(state(graph, i)),
              checksum(exact_values(name, static_cast<std::int64_t>(state(graph, i).size()))));
  }
}

// The tests below use a network with conv [3, 2, 3, 3], bn and fc, as small files suffice.
std::vector<RawTensor> small_file(std::int64_t classes) {
  const auto tensor = [](const std::string& name, const Shape& shape) {
    return RawTensor{name, "F32", shape, bytes_of(exact_values(name, num_elements(shape)))};
  };
  return {tensor("conv.weight", {3, 2, 3, 3}),
          tensor("bn.weight", {3}),
          tensor("bn.bias", {3}),
          tensor("bn.running_mean", {3}),
          tensor("bn.running_var", {3}),
          tensor("fc.weight", {classes, 48}),
          tensor("fc.bias", {classes})};
}

TEST_F(WeightsFile, WithAnotherNumberOfClassesLeavesTheHeadFresh) {
  write(small_file(1000));
  const Graph graph = checkpoint_graph("small", 5);
  EXPECT_EQ(load(graph),
            "from weights.safetensors: 5 tensors; fresh: fc.weight [5, 48] (the file has [1000, "
            "48]), fc.bias [5] (the file has [1000])");
  EXPECT_EQ(in_file_order(graph, 0), exact_values("conv.weight", 54));
  const Tensor fresh = make_host_tensor({5, 48}, DType::kF32);
  fill_initial_value(graph.parameters[3], kSeed, fresh);
  std::vector<float> in_order(fresh.f32().size());
  memory_to_file_order(graph.parameters[3], fresh.f32(), in_order);
  ASSERT_EQ(graph.parameters[3].name, "fc.weight");
  EXPECT_EQ(in_file_order(graph, 3), in_order);
}

// Pictures of another size give a head of a fixed window another number of inputs.
TEST_F(WeightsFile, WithAnotherNumberOfInputsOfTheHeadIsRefused) {
  std::vector<RawTensor> tensors = small_file(5);
  for (RawTensor& each : tensors) {
    if (each.name != "fc.weight") continue;
    each.shape = {5, 12};
    each.bytes = bytes_of(exact_values("fc.weight", 60));
  }
  write(tensors);
  EXPECT_TRUE(
      contains(usage_error_of(checkpoint_graph("small", 5)),
               "network small has fc.weight [5, 48], the file has [5, 12]; give the --model "
               "that the file belongs to, and data with as many inputs, such as pictures of "
               "the same --image-size"));
}

TEST_F(WeightsFile, LeavesAllLayersOfALongerHeadFresh) {
  write(torchvision_tensors(network("resnet20", 10)));
  EXPECT_EQ(load(network("resnet20", 5, {16})),
            "from weights.safetensors: 95 tensors; fresh: fc.0.weight [16, 64], fc.0.bias [16], "
            "fc.2.weight [5, 16], fc.2.bias [5]; not used: 19 num_batches_tracked, fc.weight, "
            "fc.bias");
}

TEST_F(WeightsFile, ThatLacksATensorIsRefusedByName) {
  std::vector<RawTensor> tensors = small_file(5);
  tensors.erase(tensors.begin() + 1);
  write(tensors);
  const std::string error = usage_error_of(checkpoint_graph());
  EXPECT_TRUE(contains(error, path_.string(), "small has bn.weight [3], which the file lacks"));
}

TEST_F(WeightsFile, WithAParameterThatPyTorchComputesNamesTheCallThatEndsIt) {
  const std::array<std::pair<std::vector<std::string>, std::string>, 5> forms = {
      {{{"weight_orig", "weight_mask"}, "prune.remove(LAYER, 'weight')"},
       {{"weight_g", "weight_v"}, "remove_weight_norm(LAYER, 'weight')"},
       {{"weight_orig", "weight_u"}, "remove_spectral_norm(LAYER, 'weight')"},
       {{"parametrizations.weight.original"},
        "parametrize.remove_parametrizations(LAYER, 'weight')"},
       {{"parametrizations.weight.original0", "parametrizations.weight.original1"},
        "parametrize.remove_parametrizations(LAYER, 'weight')"}}};
  for (const auto& [parts, call] : forms) {
    for (const std::string layer : {"conv.", "fc."}) {  // fc is the head, which may be fresh
      for (const std::string prefix : {"", "module."}) {
        std::vector<RawTensor> tensors;
        for (const RawTensor& tensor : small_file(5)) {
          RawTensor named = tensor;
          named.name = prefix + tensor.name;
          if (tensor.name != layer + "weight") {
            tensors.push_back(named);
            continue;
          }
          for (const std::string& part : parts) {
            named.name = prefix + layer + part;
            tensors.push_back(named);
          }
        }
        write(tensors);
        const std::string error = usage_error_of(checkpoint_graph());
        EXPECT_TRUE(contains(error, "network small has " + layer + "weight, which the file has as ",
                             "call torch.nn.utils." + call + " for each such layer"));
      }
    }
  }
}

TEST_F(WeightsFile, AllOfWhoseParametersPyTorchComputesNamesTheCall) {
  write({{"conv.weight_orig", "F32", {1}, bytes_of<float>({1.0F})},
         {"conv.weight_mask", "F32", {1}, bytes_of<float>({1.0F})}});
  EXPECT_TRUE(contains(usage_error_of(checkpoint_graph()),
                       "call torch.nn.utils.prune.remove(LAYER, 'weight')"));
}

TEST_F(WeightsFile, WithAnotherShapeNamesBoth) {
  std::vector<RawTensor> tensors = small_file(5);
  tensors[0] = {"conv.weight", "F32", {3, 2, 1, 1}, bytes_of(exact_values("conv", 6))};
  write(tensors);
  EXPECT_TRUE(contains(usage_error_of(checkpoint_graph()),
                       "conv.weight [3, 2, 3, 3], the file has [3, 2, 1, 1]; give the --model"));
}

TEST_F(WeightsFile, OfAnotherNetworkNamesWhatItHas) {
  write({{"encoder.weight", "F32", {1}, bytes_of<float>({1.0F})}});
  EXPECT_TRUE(contains(usage_error_of(checkpoint_graph()),
                       "no tensor of network small, such as conv.weight; it "
                       "has encoder.weight"));
}

TEST_F(WeightsFile, OfKerasIsRefusedByResnet50) {
  write({{"conv1_conv/kernel", "F32", {1}, bytes_of<float>({1.0F})}});
  EXPECT_TRUE(contains(usage_error_of(network("resnet50", 10)), "has Keras's ResNet50",
                       "give --model resnet50-v1"));
  write({{"conv1.weight", "F32", {1}, bytes_of<float>({1.0F})},
         {"conv1.bias", "F32", {1}, bytes_of<float>({1.0F})}});
  EXPECT_TRUE(contains(usage_error_of(network("resnet50", 10)), "has Keras's ResNet50"));
}

TEST_F(WeightsFile, OfTorchvisionIsRefusedByResnet50V1) {
  write({{"conv1.weight", "F32", {1}, bytes_of<float>({1.0F})}});
  EXPECT_TRUE(contains(usage_error_of(network("resnet50-v1", 10)),
                       "has the ResNet-50 of torchvision and timm"));
}

TEST_F(WeightsFile, WithValuesThatAreNotFiniteNamesTheElement) {
  std::vector<RawTensor> tensors = small_file(5);
  tensors[2].bytes = bytes_of<float>({0.0F, std::numeric_limits<float>::quiet_NaN(), 0.0F});
  write(tensors);
  EXPECT_TRUE(contains(error_of(checkpoint_graph()), "element 1 of tensor bn.bias is nan"));
}

TEST_F(WeightsFile, ThatIsCutShortIsAnErrorWithItsSize) {
  write(small_file(5));
  std::filesystem::resize_file(path_, 1000);
  const std::string error = error_of(checkpoint_graph());
  EXPECT_TRUE(
      contains(error, "weights " + path_.string() + " is cut short", "fetch the file again"));
}

TEST_F(WeightsFile, MayBeACheckpointWhoseSlotsAreNotUsed) {
  const Graph graph = checkpoint_graph();
  const Snapshot saved = counting_snapshot(graph, adam_slots(), 1.0F);
  save_checkpoint(path_, graph, saved, "adam", some_progress());
  EXPECT_EQ(load(graph),
            "from weights.safetensors: 7 tensors; not used: 10 slots of the optimizer");
  EXPECT_EQ(tensor_values(graph, snapshot_),
            tensor_values(graph, {.values = saved.values, .slots = {}, .state = saved.state}));
  EXPECT_TRUE(
      contains(usage_error_of(checkpoint_graph("large")),
               "has network small, this run has network large; give --model file:NET.json with "
               "the network small"));
}

TEST_F(WeightsFile, MayBeAFolderWhoseNewestCheckpointIsTaken) {
  const Graph graph = checkpoint_graph();
  const Snapshot saved = counting_snapshot(graph, adam_slots(), 1.0F);
  for (const int step : {10, 20}) {
    save_checkpoint(checkpoint_path(folder_.path(), step), graph, saved, "adam", some_progress());
  }
  path_ = folder_.path();
  EXPECT_TRUE(contains(load(graph), "from checkpoint-000000000020.safetensors: 7 tensors"));
  EXPECT_EQ(describe_weights(path_), describe_file(checkpoint_path(path_, 20)));
  path_ = folder_.path() / "empty";
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(contains(usage_error_of(graph), "is a folder without checkpoints; give a file"));
}

TEST_F(WeightsFile, OfARunWithAMovingAverageGivesTheAverage) {
  const Graph graph = checkpoint_graph();
  const Snapshot saved = counting_snapshot(graph, {"momentum", std::string(kAverageSlot)}, 1.0F);
  save_checkpoint(path_, graph, saved, "momentum", some_progress());
  EXPECT_EQ(load(graph),
            "from weights.safetensors: 7 tensors, the moving average; not used: 5 slots of the "
            "optimizer");
  EXPECT_EQ(
      tensor_values(graph, snapshot_),
      tensor_values(graph, {.values = saved.slots[1].values, .slots = {}, .state = saved.state}));
}

TEST_F(WeightsFile, IsComparedBetweenTasksBySizeAndChecksum) {
  write_file(path_, "one");
  const std::string one = describe_file(path_);
  write_file(folder_.path() / "copy", "one");
  EXPECT_EQ(describe_file(folder_.path() / "copy"), one);
  write_file(path_, "two");
  EXPECT_NE(describe_file(path_), one);
  EXPECT_EQ(describe_file(folder_.path() / "absent"), "unreadable");
  EXPECT_EQ(describe_file(folder_.path()), "unreadable");
}

}  // namespace
}  // namespace syncopate
