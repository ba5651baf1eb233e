// Tests the contract of a compiled model apart from its arithmetic: repeatable bits, versions,
// shared arenas and refused arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "models/base/errors.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/small_networks.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

constexpr std::int64_t kBatch = 6;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The test parameter is the number of lanes.
class BackendModel : public testing::TestWithParam<int> {
 protected:
  CaseOptions options() const {
    return {.lanes = GetParam(), .batch_size = kBatch, .winograd = false};
  }

  Graph graph_ = everything_network();
  reference::Variables variables_ = reference::random_variables(graph_, 41);
  reference::Samples samples_ = reference::random_samples(graph_, kBatch, 42);
  Batch batch_ = make_batch(graph_, samples_, kBatch);
};

TEST_P(BackendModel, GivesTheSameBitsWhenCompiledAndRunAgain) {
  for (const bool winograd : {false, true}) {
    CaseOptions with = options();
    with.winograd = winograd;
    BackendCase first(graph_, variables_, with);
    BackendCase second(graph_, variables_, with);
    const Scores once = first.step(batch_);
    (void)second.step(batch_);
    second.set_state(variables_);
    const Scores again = second.step(batch_);
    EXPECT_EQ(once.loss, again.loss);
    EXPECT_TRUE(same_bits(first.model->logits().f32(), second.model->logits().f32()));
    EXPECT_TRUE(same_bits(first.arena.gradients().f32(), second.arena.gradients().f32()));
    EXPECT_TRUE(same_bits(first.state.values.f32(), second.state.values.f32()));
  }
}

TEST_P(BackendModel, UsesNewValuesAfterTheirVersionIsIncremented) {
  BackendCase subject(graph_, variables_, options());
  (void)subject.step(batch_);
  for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
    SCOPED_TRACE(graph_.parameters[p].name);
    for (double& value : variables_.parameters[p]) value *= 1.25;
    std::ranges::transform(variables_.parameters[p], subject.arena.value(p).f32().begin(),
                           [](double value) { return static_cast<float>(value); });
    const std::int64_t begin = subject.arena.layout().offset(p);
    const auto& buckets = subject.arena.buckets();
    const auto holder = std::ranges::find_if(
        buckets, [&](const Bucket& bucket) { return bucket.begin <= begin && begin < bucket.end; });
    subject.arena.bump_version(static_cast<BucketId>(holder - buckets.begin()));
    subject.set_state(variables_);
    const Scores scores = subject.step(batch_);
    expect_equal(reference::run(graph_, variables_, samples_, kBatch, Mode::kTrain), subject,
                 scores, graph_, tolerance(options()));
  }
}

TEST_P(BackendModel, AddsTheGradientsOfMicroBatchesOnce) {
  BackendCase alone(graph_, variables_, options());
  BackendCase subject(graph_, variables_, options());
  const Batch empty = make_batch(graph_, reference::first_samples(samples_, 0), kBatch);
  (void)alone.step(batch_);
  const std::vector<float> once(alone.arena.gradients().f32().begin(),
                                alone.arena.gradients().f32().end());
  for (const Batch& last : {batch_, empty}) {
    (void)subject.model->forward(batch_, [](BucketId) {});
    subject.model->accumulate();
    (void)subject.model->forward(batch_, [](BucketId) {});
    subject.model->accumulate();
    (void)subject.step(last);
    const float times = last.num_samples == 0 ? 2.0F : 3.0F;
    std::vector<float> expected(once.size());
    // The gradients of equal micro-batches are equal, and so is each order of their sum.
    std::ranges::transform(once, expected.begin(),
                           [&](float g) { return times == 2.0F ? g + g : g + g + g; });
    EXPECT_TRUE(same_bits(subject.arena.gradients().f32(), expected)) << times;
    (void)subject.step(batch_);
    EXPECT_TRUE(same_bits(subject.arena.gradients().f32(), once))
        << "kept gradients were added twice";
  }
}

TEST_P(BackendModel, HasTheGradientOfCentralDifferencesAlongTheGradient) {
  BackendCase subject(graph_, variables_, options());
  (void)subject.step(batch_);
  const std::span<float> values = subject.arena.values().f32();
  const std::vector<float> start(values.begin(), values.end());
  const std::vector<float> gradient(subject.arena.gradients().f32().begin(),
                                    subject.arena.gradients().f32().end());
  double norm = 0.0;
  for (const float g : gradient) norm += static_cast<double>(g) * g;
  norm = std::sqrt(norm);
  // The central difference is taken along the gradient, where the loss changes most and rounding
  // matters least.
  const double distance = 1e-3;
  const auto loss_at = [&](double along) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(start[i] + along * gradient[i] / norm);
    }
    subject.arena.bump_all_versions();
    subject.set_state(variables_);
    return subject.model->forward(batch_, [](BucketId) {}).loss;
  };
  const double slope = (loss_at(distance) - loss_at(-distance)) / (2.0 * distance);
  // The tolerance of 1e-2 covers the rounding of the loss divided by the distance, and ReLUs that
  // switch within the distance.
  EXPECT_NEAR(slope, norm, 1e-2 * norm);
}

TEST_P(BackendModel, SharesArenaAndStateWithAModelForEvaluation) {
  BackendCase subject(graph_, variables_, options());
  const auto evaluating = subject.backend->compile(
      graph_, subject.arena, subject.state,
      {.mode = Mode::kEvaluate, .batch_size = kBatch + 3, .winograd = false});
  (void)subject.step(batch_);
  const std::vector<float> gradients(subject.arena.gradients().f32().begin(),
                                     subject.arena.gradients().f32().end());
  variables_.state = reference::run(graph_, variables_, samples_, kBatch, Mode::kTrain).state;
  for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
    for (double& value : variables_.parameters[p]) value = static_cast<float>(value * 0.75);
  }
  subject.set_values(variables_);
  const Scores scores = evaluating->forward(batch_, [](BucketId) {});
  const reference::Result expected =
      reference::run(graph_, variables_, samples_, kBatch, Mode::kEvaluate);
  EXPECT_NEAR(scores.loss, expected.loss, tolerance(options()) * std::max(1.0, expected.loss));
  EXPECT_LE(reference::relative_l2(expected.logits, evaluating->logits().f32()),
            tolerance(options()));
  EXPECT_TRUE(same_bits(gradients, subject.arena.gradients().f32()))
      << "evaluating wrote gradients";
}

TEST_P(BackendModel, HasTheGradientOfCentralDifferencesOfEachElement) {
  GraphBuilder build("slopes");
  NodeId x = build.input({6, 6, 2}, {.dtype = DType::kF32});
  x = build.batch_norm(build.conv2d(x, "conv", 3, {.pad = 1}), "bn");
  const Graph graph = build.finish(build.dense(build.global_average_pool(x), "fc", 3));
  const reference::Variables variables = reference::random_variables(graph, 51);
  const Batch batch = make_batch(graph, reference::random_samples(graph, kBatch, 52), kBatch);
  BackendCase subject(graph, variables, options());
  (void)subject.step(batch);
  // The difference step is 2^-7: then the rounding of the f32 forward pass, 1e-7 / step, and the
  // effect of the curvature, step^2, are both below 1e-3.
  constexpr float kStep = 0x1p-7F;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    reference::Values slopes;
    for (float& value : subject.arena.value(p).f32()) {
      const auto loss_at = [&, kept = value](float shift) {
        value = kept + shift;
        subject.arena.bump_all_versions();
        const double loss = subject.model->forward(batch, [](BucketId) {}).loss;
        value = kept;
        return loss;
      };
      const double above = loss_at(kStep);
      const double below = loss_at(-kStep);
      slopes.push_back((above - below) / (2.0 * kStep));
    }
    subject.arena.bump_all_versions();
    EXPECT_LE(reference::relative_l2(slopes, subject.arena.gradient(p).f32()), 5e-3)
        << graph.parameters[p].name;
  }
}

TEST_P(BackendModel, RefusesABatchLargerThanTheCompiledSize) {
  BackendCase subject(graph_, variables_, options());
  const Batch large =
      make_batch(graph_, reference::random_samples(graph_, kBatch + 1, 1), kBatch + 1);
  EXPECT_THROW(subject.model->forward(large, [](BucketId) {}), ShapeError);
}

TEST_P(BackendModel, RefusesSamplesOfAnotherShapeOrType) {
  BackendCase subject(graph_, variables_, options());
  Batch transposed = batch_;
  transposed.inputs[0] = make_host_tensor({kBatch, 11, 13, 3}, DType::kU8);
  EXPECT_THROW(subject.model->forward(transposed, [](BucketId) {}), ShapeError);
  Batch floats = batch_;
  floats.inputs[0] = make_host_tensor(batch_.inputs[0].shape(), DType::kF32);
  EXPECT_THROW(subject.model->forward(floats, [](BucketId) {}), ShapeError);
  Batch unlabelled = batch_;
  unlabelled.target = make_host_tensor({kBatch - 1}, DType::kI32);
  EXPECT_THROW(subject.model->forward(unlabelled, [](BucketId) {}), ShapeError);
}

TEST_P(BackendModel, RefusesToTrainADropoutOnABatchWithoutKeys) {
  GraphBuilder build("dropout");
  const NodeId x = build.dropout(build.input({4}, {.dtype = DType::kF32}), "drop");
  const Graph graph = build.finish(build.dense(x, "fc", 3));
  const reference::Variables variables = reference::random_variables(graph, 1);
  Batch batch = make_batch(graph, reference::random_samples(graph, kBatch, 2), kBatch);
  EXPECT_EQ(batch.rows(1, 3).keys.shape(), Shape{2});
  BackendCase trains(graph, variables, options());
  (void)trains.step(batch);
  Batch unlike = batch;
  unlike.keys = make_host_tensor({kBatch - 1}, DType::kI64);
  EXPECT_THROW(trains.model->forward(unlike, [](BucketId) {}), ShapeError);
  batch.keys = {};
  EXPECT_THROW(trains.model->forward(batch, [](BucketId) {}), ShapeError);
  CaseOptions evaluation = options();
  evaluation.mode = Mode::kEvaluate;
  EXPECT_NO_THROW((void)BackendCase(graph, variables, evaluation).step(batch.rows(0, 2)));
}

TEST_P(BackendModel, FindsTwoInputsByTheirNames) {
  const auto network = [](bool has_two) {
    GraphBuilder build(has_two ? "two" : "one");
    const NodeId a = build.input({8}, {.dtype = DType::kF32}, "a");
    const NodeId sum = has_two ? build.add(a, build.input({8}, {.dtype = DType::kF32}, "b")) : a;
    return build.finish(build.dense(sum, "fc", 3));
  };
  const Graph one = network(false);
  const Graph two = network(true);
  EXPECT_EQ(two.input_index("b"), 1U);
  EXPECT_THROW((void)two.input_index("c"), ShapeError);
  const reference::Variables variables = reference::random_variables(one, 61);
  Batch summed = make_batch(one, reference::random_samples(one, kBatch, 62), kBatch);
  Batch apart = summed;
  apart.inputs = {make_host_tensor({kBatch, 8}, DType::kF32),
                  make_host_tensor({kBatch, 8}, DType::kF32)};
  for (std::size_t i = 0; i < summed.inputs[0].f32().size(); ++i) {
    // Multiples of 1/16 are added without rounding.
    apart.inputs[0].f32()[i] = static_cast<float>(i % 7) / 16.0F;
    apart.inputs[1].f32()[i] = static_cast<float>(i % 5) / 16.0F;
    summed.inputs[0].f32()[i] = apart.inputs[0].f32()[i] + apart.inputs[1].f32()[i];
  }
  BackendCase expected(one, variables, options());
  BackendCase found(two, variables, options());
  EXPECT_EQ(found.step(apart).loss, expected.step(summed).loss);
  EXPECT_TRUE(same_bits(found.model->logits().f32(), expected.model->logits().f32()));
  EXPECT_TRUE(same_bits(found.arena.gradients().f32(), expected.arena.gradients().f32()));
  EXPECT_THROW(found.model->forward(summed, [](BucketId) {}), ShapeError);
}

TEST_P(BackendModel, RefusesLabelsOutOfRangeAndALossDivisorOfZero) {
  BackendCase subject(graph_, variables_, options());
  for (const std::int32_t label : {-1, 10}) {
    Batch mislabelled = batch_;
    mislabelled.target = make_host_tensor({kBatch}, DType::kI32);
    mislabelled.target.i32().back() = label;
    EXPECT_THROW(subject.model->forward(mislabelled, [](BucketId) {}), ShapeError) << label;
  }
  Batch undivided = batch_;
  undivided.loss_divisor = 0;
  EXPECT_THROW(subject.model->forward(undivided, [](BucketId) {}), ShapeError);
}

TEST_P(BackendModel, RefusesTargetsOfAnotherTypeOrShapeThanItsLoss) {
  Batch numbers = batch_;
  numbers.target = make_host_tensor({kBatch}, DType::kF32);
  BackendCase of_classes(graph_, variables_, options());
  EXPECT_THROW(of_classes.model->forward(numbers, [](BucketId) {}), ShapeError);
  for (const LossKind kind : {LossKind::kBinaryCrossEntropy, LossKind::kMeanSquaredError}) {
    GraphBuilder build("numbers");
    const Graph graph = build.finish(build.input({3}, {.dtype = DType::kF32}), {.kind = kind});
    BackendCase subject(graph, {}, options());
    Batch batch = make_batch(graph, reference::random_samples(graph, kBatch, 1), kBatch);
    EXPECT_NO_THROW((void)subject.model->forward(batch, [](BucketId) {}));
    batch.target = make_host_tensor({kBatch, 2}, DType::kF32);
    EXPECT_THROW(subject.model->forward(batch, [](BucketId) {}), ShapeError);
    batch.target = make_host_tensor({kBatch, 3}, DType::kI32);
    EXPECT_THROW(subject.model->forward(batch, [](BucketId) {}), ShapeError);
  }
}

TEST_P(BackendModel, GivesNumbersTheMeansOfPyTorch) {
  // torch.nn.functional of x = tensor([[1., -2.]]), t = tensor([[0.25, 1.]]).
  for (const auto& [kind, loss, metric, slope] :
       {std::tuple{LossKind::kBinaryCrossEntropy, 1.5950949, 0.0, 0.2405293},
        std::tuple{LossKind::kMeanSquaredError, 4.78125, 1.875, 0.75}}) {
    GraphBuilder build("numbers");
    const NodeId x = build.input({2}, {.dtype = DType::kF32});
    const Graph graph = build.finish(build.dense(x, "fc", 2), {.kind = kind});
    const reference::Variables identity{.parameters = {{1, 0, 0, 1}, {0, 0}}, .state = {}};
    const reference::Samples samples{
        .x = {1, -2}, .labels = {}, .numbers = {0.25, 1}, .targets_per_sample = 2, .keys = {0}};
    BackendCase subject(graph, identity, options());
    const Scores scores = subject.step(make_batch(graph, samples, 1));
    EXPECT_NEAR(scores.loss, loss, 1e-6);
    EXPECT_NEAR(scores.metrics[kMainMetric], metric, 1e-6);
    EXPECT_NEAR(subject.arena.gradient(1).f32()[0], slope, 1e-6);  // of the first bias
  }
}

TEST_P(BackendModel, ComputesCorrectlyAfterAHookThatThrew) {
  BackendCase subject(graph_, variables_, options());
  EXPECT_THROW(subject.model->forward(batch_,
                                      [](BucketId id) {
                                        if (id == 0) throw PeerError("gone");
                                      }),
               PeerError);
  (void)subject.model->forward(batch_, [](BucketId) {});
  EXPECT_THROW(subject.model->backward([](BucketId id) {
    if (id == 1) throw PeerError("gone");
  }),
               PeerError);
  subject.set_state(variables_);
  const Scores scores = subject.step(batch_);
  expect_equal(reference::run(graph_, variables_, samples_, kBatch, Mode::kTrain), subject, scores,
               graph_, tolerance(options()));
}

TEST_P(BackendModel, UpdatesTheArenaInPiecesToTheBitsOfOneUpdate) {
  const auto optimizer = make_optimizer({.name = "momentum", .weight_decay = 0.01F});
  BackendCase whole(graph_, variables_, options());
  BackendCase pieces(graph_, variables_, options());
  const std::int64_t total = whole.arena.layout().total();
  const std::vector<Tensor> slots = {make_host_tensor({total}, DType::kF32)};
  const std::vector<Tensor> other_slots = {make_host_tensor({total}, DType::kF32)};
  for (std::int64_t step = 1; step <= 2; ++step) {
    (void)whole.step(batch_);
    (void)pieces.step(batch_);
    const UpdateStep update{.learning_rate = 0.1F, .step = step};
    whole.backend->update(*optimizer, update, whole.arena, slots, {0, total});
    std::int64_t begin = 0;
    for (const std::int64_t end : {std::int64_t{37}, total / 3 + 1, total}) {
      pieces.backend->update(*optimizer, update, pieces.arena, other_slots, {begin, end});
      begin = end;
    }
    whole.arena.bump_all_versions();
    pieces.arena.bump_all_versions();
  }
  EXPECT_TRUE(same_bits(whole.arena.values().f32(), pieces.arena.values().f32()));
  EXPECT_FALSE(std::ranges::equal(variables_.parameters[0], whole.arena.value(0).f32()));
}

INSTANTIATE_TEST_SUITE_P(Lanes, BackendModel, testing::Values(1, 2, 3));

TEST(CpuBackend, RefusesAPoolingWindowWithMorePositionsThanAByteHolds) {
  const auto pooled = [](int window) {
    GraphBuilder build("pooled");
    const NodeId x = build.input({17, 17, 1}, {.dtype = DType::kF32});
    const NodeId y = build.max_pool(x, {.window = window, .stride = 1});
    return build.finish(build.dense(build.flatten(y), "fc", 2));
  };
  const auto compile = [](const Graph& graph) {
    ParameterArena arena(graph.parameter_layout(), plan_buckets(graph.parameter_layout(), 4096));
    StateBlock state(graph.state_layout());
    const auto backend = make_cpu_backend(1);
    (void)backend->compile(graph, arena, state, {.batch_size = 1});
  };
  EXPECT_NO_THROW(compile(pooled(16)));
  EXPECT_THROW(compile(pooled(17)), UnavailableError);
}

TEST(CpuBackend, RefusesZeroLanes) { EXPECT_THROW(make_cpu_backend(0), UsageError); }

TEST(CpuBackend, DescribesInstructionSetLanesAndLibraries) {
  const std::string description = make_cpu_backend(2)->description();
  EXPECT_TRUE(contains(description, "x86-64-v", "2 lanes", "oneDNN"));
}

}  // namespace
}  // namespace syncopate
