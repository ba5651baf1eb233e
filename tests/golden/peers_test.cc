// Compares resnet50 with torchvision, and resnet50-v1 and fcn with Keras: logits and gradients from
// the same weights, which peers.py writes and load_weights() reads. The Python with the packages
// torch and torchvision, keras and jax, and safetensors is named by the variable
// SYNCOPATE_PEER_PYTHON; without them the tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "models/backend/backend.h"
#include "models/zoo/zoo.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/python_peer.h"
#include "tests/reference/random_case.h"
#include "tests/support/temporary_folder.h"
#include "worker/checkpoint/tensor_names.h"
#include "worker/checkpoint/weights_file.h"

namespace syncopate {
namespace {

constexpr std::int64_t kImages = 4;
constexpr std::int64_t kSize = 64;

NetworkInput pictures() {
  return {.sample_shape = {kSize, kSize, 3},
          .classes = 10,
          .input = {DType::kU8, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}};
}

NetworkInput maps_of_four_channels() {
  return {.sample_shape = {kSize, kSize, 4},
          .classes = 2,
          .input = {DType::kU8, {0.4F, 0.4F, 0.4F, 0.4F}, {0.25F, 0.25F, 0.25F, 0.25F}},
          .target_shape = {kSize, kSize}};
}

// `name` is the word of peers.py.
struct Peer {
  std::string name;
  std::string network;
  NetworkInput input;
};

class PeerOfANetwork : public testing::TestWithParam<Peer> {
 protected:
  void SetUp() override {
    const PythonPeer peer = run_python_peer(
        "peers.py", GetParam().name + " " + folder_.path().string(), folder_.path() / "log");
    if (peer.is_absent) {
      GTEST_SKIP() << "SYNCOPATE_PEER_PYTHON names no Python with " << GetParam().name << ": "
                   << peer.output;
    }
    ASSERT_EQ(peer.exit_code, 0) << peer.output;
  }

  // Reads weights and samples of peers.py, and compiles the network for them.
  void load(const std::string& weights, Mode mode) {
    expected_ = read_golden_file(folder_.path() / (weights + ".expected.safetensors"));
    load_weights(folder_.path() / (weights + ".weights.safetensors"), graph_, 1,
                 {.values = arena_.values(), .slots = {}, .state = state_.values});
    arena_.bump_all_versions();
    batch_ = make_batch();
    model_ = backend_->compile(graph_, arena_, state_, {.mode = mode, .batch_size = kImages});
  }

  Batch make_batch() const {
    const auto of_batch = [](Shape shape) {
      shape.insert(shape.begin(), kImages);
      return shape;
    };
    const NetworkInput& input = GetParam().input;
    Batch batch{.inputs = {make_host_tensor(of_batch(input.sample_shape), DType::kU8)},
                .target = make_host_tensor(of_batch(input.target_shape), DType::kI32),
                .num_samples = kImages,
                .loss_divisor = kImages};
    std::ranges::transform(expected_.tensors.at("images"), batch.inputs.front().u8().begin(),
                           [](double pixel) { return static_cast<std::uint8_t>(pixel); });
    std::ranges::transform(expected_.tensors.at("labels"), batch.target.i32().begin(),
                           [](double label) { return static_cast<std::int32_t>(label); });
    return batch;
  }

  double logits_distance() {
    load("logits", Mode::kEvaluate);
    model_->forward(batch_, [](BucketId) {});
    return reference::relative_l2(expected_.tensors.at("logits"), model_->logits().f32());
  }

  // Returns the largest distance of a parameter's gradient from the peer's, relative to the norm of
  // that gradient. The gradient of a bias in front of a batch norm is zero; a millionth of the norm
  // of all gradients is added, so that its rounding errors do not count.
  double gradient_distance() {
    load("gradients", Mode::kTrain);
    const double loss = model_->forward(batch_, [](BucketId) {}).loss;
    EXPECT_NEAR(loss / expected_.tensors.at("loss")[0], 1.0, 1e-4);
    model_->backward([](BucketId) {});
    double all = 0.0;
    for (const auto& [name, values] : expected_.tensors) {
      if (name.starts_with("gradient/")) all += square_of(values);
    }
    double largest = 0.0;
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const std::vector<double>& expected = golden_gradient(p);
      const std::vector<float> found = in_order_of_peer(p);
      EXPECT_EQ(found.size(), expected.size());
      double difference = 0.0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        difference += (found[i] - expected[i]) * (found[i] - expected[i]);
      }
      const double distance =
          std::sqrt(difference) / (std::sqrt(square_of(expected)) + 1e-6 * std::sqrt(all));
      if (distance > largest) farthest_ = graph_.parameters[p].name;
      largest = std::max(largest, distance);
    }
    return largest;
  }

  bool is_keras() const { return GetParam().name == "keras"; }

  const std::vector<double>& golden_gradient(std::size_t p) const {
    const std::string& name = graph_.parameters[p].name;
    return expected_.tensors.at("gradient/" + (is_keras() ? keras_name(name) : name));
  }

  std::vector<float> in_order_of_peer(std::size_t p) const {
    const Parameter& parameter = graph_.parameters[p];
    const std::span<const float> memory = arena_.gradient(p).f32();
    std::vector<float> ordered(memory.size());
    if (!is_keras()) {
      memory_to_file_order(parameter, memory, ordered);
      return ordered;
    }
    const auto outputs = static_cast<std::size_t>(parameter.shape.front());
    const std::size_t inputs = memory.size() / outputs;
    for (std::size_t k = 0; k < outputs; ++k) {
      for (std::size_t c = 0; c < inputs; ++c) ordered[c * outputs + k] = memory[k * inputs + c];
    }
    return ordered;
  }

  static double square_of(const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) sum += value * value;
    return sum;
  }

  TemporaryFolder folder_;
  Graph graph_ = build_network(GetParam().network, GetParam().input);
  ParameterArena arena_{graph_.parameter_layout(),
                        plan_buckets(graph_.parameter_layout(), 4 << 20)};
  StateBlock state_{graph_.state_layout()};
  GoldenFile expected_;
  Batch batch_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(2);
  std::unique_ptr<Model> model_;
  std::string farthest_;
};

// One test, because a peer takes many seconds to compute its numbers.
TEST_P(PeerOfANetwork, HasTheSameLogitsAndGradientsFromTheSameWeights) {
  EXPECT_LE(logits_distance(), 1e-4);
  // 1e-3: terms of float32 sums cancel in a batch norm.
  EXPECT_LE(gradient_distance(), 1e-3) << farthest_;
}

INSTANTIATE_TEST_SUITE_P(Zoo, PeerOfANetwork,
                         testing::Values(Peer{"torch", "resnet50", pictures()},
                                         Peer{"keras", "resnet50-v1", pictures()},
                                         Peer{"keras-fcn", "fcn", maps_of_four_channels()}),
                         [](const auto& instance) {
                           return instance.param.network == "fcn" ? "fcn" : instance.param.name;
                         });

}  // namespace
}  // namespace syncopate
