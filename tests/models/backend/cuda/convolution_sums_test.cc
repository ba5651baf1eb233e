// Tests fp16 convolutions that sum their output for the following batch norm: which convolutions
// the program asks to sum, that a step has the interpreter's results in each case, and a library
// that cannot sum. Runs on the emulated device only, which can imitate all these cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/models/backend/cuda/convolution_sums_case.h"
#include "tests/models/backend/cuda/emulated_stream.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate::cuda {
namespace {

Graph network(const std::string& name) {
  for (SmallNetwork& one : small_networks()) {
    if (one.name == name) return std::move(one.graph);
  }
  throw std::logic_error("no small network is called " + name);
}

Graph with_relu_between() {
  GraphBuilder build("relu between");
  NodeId x = build.input({6, 6, 16}, {.dtype = DType::kF32});
  x = build.batch_norm(build.relu(build.conv2d(x, "conv", 16, {.pad = 1})), "bn");
  return build.finish(build.dense(build.flatten(x), "fc", 4));
}

Graph with_bias() {
  GraphBuilder build("bias");
  NodeId x = build.input({6, 6, 16}, {.dtype = DType::kF32});
  x = build.batch_norm(build.conv2d(x, "conv", 16, {.pad = 1, .bias = true}), "bn");
  return build.finish(build.dense(build.flatten(x), "fc", 4));
}

Requests requests_of(const Graph& graph, const SumsOptions& options = {}) {
  return SumsSubject(graph, reference::random_variables(graph, 21), options).requests;
}

TEST(ConvolutionSums, AreLeftWhereABatchNormAloneReadsTheOutput) {
  // Three convolutions request sums of their output. The two of the residual block, which read 16
  // channels, get them; the first one, which reads colours, does not.
  EXPECT_EQ(requests_of(network("ResidualBlock16")), (Requests{.asked = 3, .granted = 2}));
  EXPECT_EQ(requests_of(network("ResidualBlock16"), {.fuse = false}),
            (Requests{.asked = 3, .granted = 2}));
  EXPECT_EQ(requests_of(network("ConvReadByBatchNormAndAdd")), Requests{});
  EXPECT_EQ(requests_of(with_relu_between()), Requests{});
  EXPECT_EQ(requests_of(with_bias()), Requests{});
}

TEST(ConvolutionSums, AreLeftInFp16TrainingAlone) {
  const Graph graph = network("ResidualBlock16");
  EXPECT_EQ(requests_of(graph, {.precision = Precision::kF32}), Requests{});
  EXPECT_EQ(requests_of(graph, {.precision = Precision::kBf16}), Requests{});
  EXPECT_EQ(requests_of(graph, {.mode = Mode::kEvaluate}), Requests{});
}

constexpr EmulatedSums kAllSums[] = {EmulatedSums::kOfStored, EmulatedSums::kOfUnrounded,
                                     EmulatedSums::kNone};

TEST(ConvolutionSums, LeaveAStepNearTheInterpreterForAnySource) {
  for (const char* name : {"ResidualBlock16", "ResidualBlock16To32", "ConvBatchNormRelu20To24",
                           "BatchNormWithItsOwnConstants"}) {
    SCOPED_TRACE(name);
    const SumsCase with(network(name));
    for (const EmulatedSums sums : kAllSums) {
      for (const bool fuse : {true, false}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(sums)) + (fuse ? ", fused" : ", plain"));
        SumsSubject subject(with.graph, with.variables, {.sums = sums, .fuse = fuse});
        // A shorter batch follows a longer one, so that values left over from the longer one would
        // show. A batch of one sample is left out, because its variance is too sensitive to
        // roundings.
        for (const std::int64_t count : {8, 5, 8}) {
          subject.on_device.set_state(with.variables);
          subject.on_device.step(with.batch(count));
          expect_near(with.expected(reference::first_samples(with.samples, count)), with.graph,
                      subject.on_device);
        }
        subject.on_device.step(with.batch(0));
        const auto gradients = subject.on_device.arena.gradients().f32();
        EXPECT_TRUE(std::ranges::all_of(gradients, [](float value) { return value == 0.0F; }));
      }
    }
  }
}

// Returns a network whose map has a mean of forty deviations, where f16 has steps of a twenty-fifth
// of the deviation. The network has no ReLU, because a rounding could move a value across its kink.
SumsCase large_mean() {
  GraphBuilder build("large mean");
  NodeId x = build.input({6, 6, 8}, {.dtype = DType::kF32});
  x = build.conv2d(x, "conv", 16, {.kernel_h = 1, .kernel_w = 1});
  x = build.batch_norm(x, "bn");
  SumsCase with(build.finish(build.dense(build.flatten(x), "fc", 4)));
  for (double& value : with.variables.parameters[0]) value = 1.0 + 0.25 * value;
  round_to(Precision::kF16, with.variables.parameters[0]);
  for (double& value : with.samples.x) value = 2.0 + 0.25 * value;
  return with;
}

TEST(ConvolutionSums, LeaveAStepNearTheInterpreterWhereTheMeanIsLarge) {
  const SumsCase with = large_mean();
  for (const EmulatedSums sums : kAllSums) {
    SCOPED_TRACE(static_cast<int>(sums));
    SumsSubject subject(with.graph, with.variables, {.sums = sums});
    EXPECT_EQ(subject.requests.granted, sums == EmulatedSums::kNone ? 0 : 1);
    subject.on_device.step(with.batch(kBatch));
    expect_near(with.expected(with.samples), with.graph, subject.on_device);
  }
}

TEST(ConvolutionSums, LeaveNoNaNWhereAllSamplesAreTheSame) {
  SumsCase with = large_mean();
  std::ranges::fill(with.samples.x, 3.3);
  for (const EmulatedSums sums : kAllSums) {
    SumsSubject subject(with.graph, with.variables, {.sums = sums});
    subject.on_device.step(with.batch(kBatch));
    const auto is_finite = [](float value) { return std::isfinite(value); };
    EXPECT_TRUE(std::ranges::all_of(subject.on_device.model->logits().f32(), is_finite));
    EXPECT_TRUE(std::ranges::all_of(subject.on_device.arena.gradients().f32(), is_finite));
    EXPECT_TRUE(std::ranges::all_of(subject.on_device.state.values.f32(), is_finite));
  }
}

// A SamePeer adds to the sums what a second replica with equal samples would add.
class SamePeer final : public StatisticsReducer {
 public:
  void sum(std::span<double> values) override {
    for (double& value : values) value *= 2.0;
  }
};

TEST(ConvolutionSums, AreSummedOverReplicas) {
  const SumsCase with(network("ResidualBlock16To32"));
  reference::Samples of_all = with.samples;
  of_all.x.insert(of_all.x.end(), with.samples.x.begin(), with.samples.x.end());
  of_all.labels.insert(of_all.labels.end(), with.samples.labels.begin(), with.samples.labels.end());
  reference::Result expected = with.expected(of_all);
  // Half of the expected samples belong to this replica, the other half to its peer.
  expected.logits.resize(expected.logits.size() / 2);
  for (reference::Values& gradient : expected.gradients) {
    for (double& value : gradient) value *= 0.5;
  }
  SamePeer peer;
  for (const EmulatedSums sums : kAllSums) {
    SCOPED_TRACE(static_cast<int>(sums));
    SumsSubject subject(with.graph, with.variables, {.sums = sums, .statistics = &peer});
    subject.on_device.step(with.batch(kBatch));
    expect_near(expected, with.graph, subject.on_device);
  }
}

// Returns the parameter values and running statistics after six steps.
std::vector<float> trained(const SumsCase& with, bool captures) {
  SumsSubject subject(with.graph, with.variables,
                      {.updates_on_device = true, .captures = captures});
  BackendCase& on_device = subject.on_device;
  const auto optimizer = make_optimizer({.name = "momentum"});
  const std::vector<Tensor> slots{
      make_host_tensor({on_device.arena.layout().total()}, DType::kF32)};
  for (int step = 1; step <= 6; ++step) {
    on_device.step(with.batch(kBatch));
    on_device.backend->update(*optimizer, {.learning_rate = 0.01F, .step = step}, on_device.arena,
                              slots, {0, on_device.arena.layout().total()});
    on_device.arena.bump_all_versions();
  }
  on_device.backend->to_host(on_device.arena, slots);
  const auto values = on_device.arena.values().f32();
  std::vector<float> all(values.begin(), values.end());
  const auto state = on_device.state.values.f32();
  all.insert(all.end(), state.begin(), state.end());
  return all;
}

TEST(ConvolutionSums, HaveTheSameBitsWhereAStepIsCapturedAndAtEveryPaceOfStreams) {
  const SumsCase with(network("ResidualBlock16"));
  const std::vector<float> expected = trained(with, false);
  for (const float value : expected) ASSERT_EQ(value, value) << "not a number";
  EXPECT_EQ(expected, trained(with, true));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const EmulatedPace pace(seed);
    EXPECT_EQ(expected, trained(with, true)) << "at the pace of seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate::cuda
