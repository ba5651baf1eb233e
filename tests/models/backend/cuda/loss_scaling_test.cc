// Tests fp16 training with a scaled loss: which steps are skipped, and which values the scale may
// change. Linked for a GPU and for the emulated one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/backend/cuda/cuda_backend.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/cuda/device_under_test.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate::cuda {
namespace {

constexpr std::int64_t kBatch = 8;
constexpr float kTooLarge = 0x1p40F;  // makes the loss's gradient exceed f16

std::vector<float> copy_of(const Tensor& block) {
  const auto values = block.f32();
  return {values.begin(), values.end()};
}

// Training is a network that trains in fp16, with every value that an update changes.
class Training {
 public:
  struct Options {
    LossScaling scaling;
    bool updates_on_device = true;
    bool captures = true;
    StatisticsReducer* statistics = nullptr;
  };
  Training(const Graph& graph, const Options& options)
      : graph_(graph),
        case_(graph, reference::random_variables(graph, 21),
              {.batch_size = kBatch,
               .updates_on_device = options.updates_on_device,
               .statistics = options.statistics,
               .make_backend =
                   [=] {
                     return make_cuda_backend({.device = {DeviceKind::kCuda, 0},
                                               .precision = Precision::kF16,
                                               .deterministic = true,
                                               .captures_steps = options.captures,
                                               .loss_scaling = options.scaling},
                                              operations_under_test());
                   }}),
        slots_{make_host_tensor({case_.arena.layout().total()}, DType::kF32)} {}

  void step() {
    case_.step(make_batch(graph_, samples_, kBatch));
    case_.backend->update(*optimizer_, {.learning_rate = 1e-4F, .step = ++steps_}, case_.arena,
                          slots_, {0, case_.arena.layout().total()});
    case_.arena.bump_all_versions();
  }
  // Runs at most `most` steps until a step is not skipped; returns the number of skipped steps.
  int skipped_steps(int most) {
    const auto before = values_and_slots();
    int skipped = -1;
    do {
      step();
      ++skipped;
    } while (skipped < most && values_and_slots() == before);
    return skipped;
  }
  std::vector<std::vector<float>> values_and_slots() {
    case_.backend->to_host(case_.arena, slots_);
    return {copy_of(case_.arena.values()), copy_of(slots_[0])};
  }
  LossScaleState loss_scale() { return case_.backend->loss_scale(case_.arena).value(); }
  // Copies values and loss scale of `other`, as if resumed from a checkpoint of `other`.
  void resume_from(Training& other) {
    const auto before = other.values_and_slots();
    std::ranges::copy(before[0], case_.arena.values().f32().begin());
    std::ranges::copy(before[1], slots_[0].f32().begin());
    std::ranges::copy(other.state(), case_.state.values.f32().begin());
    case_.arena.bump_all_versions();
    case_.backend->set_loss_scale(case_.arena, other.loss_scale());
    steps_ = other.steps_;
  }
  std::vector<float> gradients() const { return copy_of(case_.arena.gradients()); }
  std::vector<float> state() const { return copy_of(case_.state.values); }

 private:
  const Graph& graph_;
  const reference::Samples samples_ = reference::random_samples(graph_, kBatch, 22);
  const std::unique_ptr<Optimizer> optimizer_ = make_optimizer({.name = "momentum"});
  BackendCase case_;
  std::vector<Tensor> slots_;
  int steps_ = 0;
};

class LossScalingOf : public testing::TestWithParam<SmallNetwork> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  }
  const Graph& graph() const { return GetParam().graph; }
};

TEST_P(LossScalingOf, SkipsStepsUntilTheScaleFitsAndThenTrainsAsFromThatScale) {
  for (const bool captures : {true, false}) {
    Training run(graph(), {.scaling = {.first = kTooLarge}, .captures = captures});
    const int skipped = run.skipped_steps(40);
    ASSERT_GE(skipped, 10);
    ASSERT_LT(skipped, 40);
    Training fitting(graph(),
                     {.scaling = {.first = std::ldexp(kTooLarge, -skipped)}, .captures = captures});
    EXPECT_EQ(fitting.skipped_steps(1), 0);
    const auto expected = fitting.values_and_slots();
    const auto found = run.values_and_slots();
    if (graph().state.empty()) {
      EXPECT_EQ(found, expected);
    }
    // Compared with a run without skipped steps, the values differ by roundings: skipped steps move
    // the running means, around which batch norm sums.
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const reference::Values right(expected[i].begin(), expected[i].end());
      EXPECT_LE(reference::relative_l2(right, found[i]), 1e-2);
    }
  }
}

TEST_P(LossScalingOf, ReturnsZerosForASkippedStep) {
  Training run(graph(), {.scaling = {.first = kTooLarge}, .updates_on_device = false});
  const auto is_zero = [](float value) { return value == 0.0F; };
  int skipped = 0;
  for (run.step(); skipped < 40 && std::ranges::all_of(run.gradients(), is_zero); ++skipped) {
    run.step();
  }
  EXPECT_GE(skipped, 10);
  EXPECT_LT(skipped, 40);
  EXPECT_TRUE(
      std::ranges::all_of(run.gradients(), [](float value) { return std::isfinite(value); }));
}

TEST_P(LossScalingOf, GrowsUntilAStepIsSkipped) {
  Training run(graph(), {.scaling = {.first = 1.0F, .growth_interval = 1}});
  bool skipped = false;
  for (int step = 0; step < 40 && !skipped; ++step) skipped = run.skipped_steps(1) > 0;
  EXPECT_TRUE(skipped);
}

// If no value leaves f16's range, a scale that is a power of two changes no bit, and another factor
// changes roundings only.
TEST_P(LossScalingOf, ChangesNothingButRoundingsWhereAllIsFinite) {
  std::vector<std::vector<float>> gradients;
  for (const float first : {64.0F, 128.0F, 100.0F}) {
    Training run(graph(), {.scaling = {.first = first}, .updates_on_device = false});
    run.step();
    gradients.push_back(run.gradients());
  }
  const reference::Values expected(gradients[0].begin(), gradients[0].end());
  // The tolerance of 1e-4 allows for the smallest numbers of f16, which lose bits.
  EXPECT_LE(reference::relative_l2(expected, gradients[1]), 1e-4);
  EXPECT_LE(reference::relative_l2(expected, gradients[2]), 5e-3);  // f16 has 11 bits
}

TEST_P(LossScalingOf, HasTheSameBitsWhereAStepIsCaptured) {
  std::vector<std::vector<std::vector<float>>> runs;
  for (const bool captures : {true, false}) {
    // In this test some steps are skipped, then the loss scale grows again, and falls.
    Training run(graph(),
                 {.scaling = {.first = 0x1p20F, .growth_interval = 2}, .captures = captures});
    for (int step = 0; step < 12; ++step) run.step();
    runs.push_back(run.values_and_slots());
    runs.back().push_back(run.state());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST_P(LossScalingOf, ResumesWithTheSavedScale) {
  const LossScaling scaling{.first = 0x1p20F, .growth_interval = 3};
  Training run(graph(), {.scaling = scaling});
  for (int step = 0; step < 10; ++step) run.step();
  EXPECT_GT(run.loss_scale().skipped_steps, 0);
  EXPECT_NE(run.loss_scale().scale, scaling.first);
  Training resumed(graph(), {.scaling = scaling});
  resumed.resume_from(run);
  EXPECT_EQ(resumed.loss_scale(), run.loss_scale());
  for (Training* one : {&run, &resumed}) {
    for (int step = 0; step < 6; ++step) one->step();
  }
  EXPECT_EQ(resumed.values_and_slots(), run.values_and_slots());
  EXPECT_EQ(resumed.state(), run.state());
  EXPECT_EQ(resumed.loss_scale(), run.loss_scale());
}

TEST_P(LossScalingOf, HasTheSameBitsWhereTheHostUpdates) {
  std::vector<std::vector<std::vector<float>>> runs;
  for (const bool on_device : {true, false}) {
    Training run(graph(), {.scaling = {.first = 64.0F}, .updates_on_device = on_device});
    for (int step = 0; step < 4; ++step) run.step();
    runs.push_back(run.values_and_slots());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// A Recorder records the statistics that this replica contributes to a sum.
class Recorder final : public StatisticsReducer {
 public:
  void sum(std::span<double> values) override {
    sums.insert(sums.end(), values.begin(), values.end());
  }
  std::vector<double> sums;
};

TEST_P(LossScalingOf, IsNotInTheStatisticsThatReplicasSum) {
  std::vector<Recorder> replicas(2);
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    Training run(graph(), {.scaling = {.first = r == 0 ? 64.0F : 128.0F},
                           .updates_on_device = false,
                           .statistics = &replicas[r]});
    run.step();
  }
  ASSERT_EQ(replicas[0].sums.size(), replicas[1].sums.size());
  for (std::size_t i = 0; i < replicas[0].sums.size(); ++i) {
    // The tolerance of 1e-3 covers the rounding of f16's smallest numbers.
    EXPECT_NEAR(replicas[0].sums[i], replicas[1].sums[i],
                1e-3 * std::max(1.0, std::abs(replicas[0].sums[i])));
  }
}

std::vector<SmallNetwork> some_networks() {
  std::vector<SmallNetwork> networks{{"Everything", everything_network()}};
  for (SmallNetwork& network : small_networks()) {
    for (const char* name : {"TwoConvReluPools", "ConvBatchNormRelu", "ResidualBlock10"}) {
      if (network.name == name) networks.push_back(std::move(network));
    }
  }
  return networks;
}

INSTANTIATE_TEST_SUITE_P(Small, LossScalingOf, testing::ValuesIn(some_networks()),
                         [](const auto& network) { return network.param.name; });

}  // namespace
}  // namespace syncopate::cuda
