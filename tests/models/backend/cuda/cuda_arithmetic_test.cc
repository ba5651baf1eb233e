// Compares the CUDA backend with the interpreter, network by network. The test is linked twice:
// with the runtime and libraries of a GPU, and with emulated ones, so that programs and kernels are
// checked without a GPU, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/base/errors.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/cuda/device_under_test.h"
#include "tests/models/backend/cuda/stored_in_16_bits.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate::cuda {
namespace {

constexpr std::int64_t kLargestBatch = 8;
constexpr std::int64_t kLossDivisor = 13;  // exceeds the batch, as with several replicas

// Passes calls on to the operations under test, but offers no epilogues of products.
class WithoutEpilogues final : public Operations {
 public:
  explicit WithoutEpilogues(cudaStream_t stream) : operations_(operations_under_test()(stream)) {}
  std::string description() const override { return operations_->description(); }
  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    return operations_->convolution(pass, shape, limits);
  }
  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    if (shape.epilogue != Epilogue::kNone) throw UnavailableError("none of " + to_string(shape));
    return operations_->product(shape, limits);
  }

 private:
  std::unique_ptr<Operations> operations_;
};

// Passes calls on, and counts the convolutions whose algorithms may be timed.
class CountingOperations final : public Operations {
 public:
  CountingOperations(cudaStream_t stream, int& timed)
      : operations_(operations_under_test()(stream)), timed_(timed) {}
  std::string description() const override { return operations_->description(); }
  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    if (limits.measures) ++timed_;
    return operations_->convolution(pass, shape, limits);
  }
  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return operations_->product(shape, limits);
  }

 private:
  std::unique_ptr<Operations> operations_;
  int& timed_;
};

std::unique_ptr<Operations> without_epilogues(cudaStream_t stream) {
  return std::make_unique<WithoutEpilogues>(stream);
}

class CudaArithmetic : public testing::TestWithParam<SmallNetwork> {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  }

  const Graph& graph() const { return GetParam().graph; }

  static CaseOptions options_for(Precision precision, Mode mode, bool fuse,
                                 bool deterministic = true,
                                 PlanOperations operations = operations_under_test()) {
    return {.batch_size = kLargestBatch, .fuse = fuse, .mode = mode, .make_backend = [=] {
              // With an initial loss scale of 64, no step of these networks is skipped.
              return make_cuda_backend({.device = {DeviceKind::kCuda, 0},
                                        .precision = precision,
                                        .deterministic = deterministic,
                                        .loss_scaling = {.first = 64.0F}},
                                       operations);
            }};
  }

  void expect_right(BackendCase& subject, std::int64_t batch, double tolerance) {
    SCOPED_TRACE(std::to_string(batch) + " samples");
    subject.set_state(variables_);
    const reference::Samples some = reference::first_samples(samples_, batch);
    const reference::Result expected =
        reference::run(graph(), variables_, some, static_cast<double>(kLossDivisor), subject.mode);
    const Scores scores = subject.step(make_batch(graph(), some, kLossDivisor));
    expect_equal(expected, subject, scores, graph(), tolerance);
  }

  reference::Variables variables_ = reference::random_variables(graph(), 21);
  reference::Samples samples_ = reference::random_samples(graph(), kLargestBatch, 22);
};

TEST_P(CudaArithmetic, TrainsAsTheInterpreterDoesForEveryBatchUpToTheCompiledOne) {
  for (const bool fuse : {true, false}) {
    BackendCase subject(graph(), variables_, options_for(Precision::kF32, Mode::kTrain, fuse));
    // Shorter batches follow longer batches, so that values left over from the longer ones would
    // show.
    for (const std::int64_t batch : {8, 5, 1, 0, 8}) expect_right(subject, batch, f32_tolerance());
  }
}

TEST_P(CudaArithmetic, TrainsAsTheInterpreterDoesWhereProductsHaveNoEpilogues) {
  BackendCase subject(graph(), variables_,
                      options_for(Precision::kF32, Mode::kTrain, true, true, without_epilogues));
  for (const std::int64_t batch : {8, 5, 0}) expect_right(subject, batch, f32_tolerance());
}

TEST_P(CudaArithmetic, EvaluatesAsTheInterpreterDoesAndKeepsTheState) {
  BackendCase subject(graph(), variables_, options_for(Precision::kF32, Mode::kEvaluate, true));
  for (const std::int64_t batch : {8, 5, 0}) expect_right(subject, batch, f32_tolerance());
  for (std::size_t s = 0; s < variables_.state.size(); ++s) {
    EXPECT_TRUE(std::ranges::equal(subject.state.value(s).f32(), variables_.state[s]))
        << graph().state[s].name << " changed";
  }
}

TEST_P(CudaArithmetic, GivesTheSameBitsTwice) {
  std::vector<std::vector<float>> runs;
  for (int run = 0; run < 2; ++run) {
    BackendCase subject(graph(), variables_, options_for(Precision::kF32, Mode::kTrain, true));
    subject.step(make_batch(graph(), samples_, kLossDivisor));
    const auto gradients = subject.arena.gradients().f32();
    runs.emplace_back(gradients.begin(), gradients.end());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// Applies one step of each optimizer on the device and on the CPU, from equal gradients.
TEST_P(CudaArithmetic, UpdatesWithTheBitsOfTheCpu) {
  for (const OptimizerRow& row : optimizers()) {
    SCOPED_TRACE(row.name);
    const auto optimizer = make_optimizer({.name = std::string(row.name), .weight_decay = 0.01});
    CaseOptions options = options_for(Precision::kF32, Mode::kTrain, true);
    BackendCase on_host(graph(), variables_, options);
    options.updates_on_device = true;
    BackendCase on_device(graph(), variables_, options);
    const Batch batch = make_batch(graph(), samples_, kLossDivisor);
    for (BackendCase* subject : {&on_host, &on_device}) {
      std::vector<Tensor> slots;
      for (std::size_t s = 0; s < optimizer->slot_names().size(); ++s) {
        slots.push_back(make_host_tensor({subject->arena.layout().total()}, DType::kF32));
      }
      for (int step = 1; step <= 3; ++step) {
        subject->step(batch);
        subject->backend->update(*optimizer, {.learning_rate = 0.01F, .step = step}, subject->arena,
                                 slots, {0, subject->arena.layout().total()});
        subject->arena.bump_all_versions();
      }
      subject->backend->to_host(subject->arena, slots);
    }
    EXPECT_TRUE(std::ranges::equal(on_host.arena.values().f32(), on_device.arena.values().f32()));
  }
}

// Compares six steps, most of which start as one CUDA graph, with six steps that start kernel by
// kernel.
TEST_P(CudaArithmetic, HasTheSameBitsWhereAStepIsCaptured) {
  std::vector<std::vector<float>> runs;
  for (const bool captures : {false, true}) {
    CaseOptions options = options_for(Precision::kF32, Mode::kTrain, true);
    options.updates_on_device = true;
    options.make_backend = [captures] {
      return make_cuda_backend(
          {.device = {DeviceKind::kCuda, 0}, .deterministic = true, .captures_steps = captures},
          operations_under_test());
    };
    BackendCase subject(graph(), variables_, options);
    const auto optimizer = make_optimizer({.name = "momentum"});
    const std::vector<Tensor> slots{
        make_host_tensor({subject.arena.layout().total()}, DType::kF32)};
    for (int step = 1; step <= 6; ++step) {
      subject.step(make_batch(graph(), samples_, kLossDivisor + (step == 5 ? 1 : 0)));
      subject.backend->update(*optimizer, {.learning_rate = 0.01F, .step = step}, subject.arena,
                              slots, {0, subject.arena.layout().total()});
      subject.arena.bump_all_versions();
    }
    subject.backend->to_host(subject.arena, slots);
    const auto values = subject.arena.values().f32();
    runs.emplace_back(values.begin(), values.end());
    const auto state = subject.state.values.f32();
    runs.back().insert(runs.back().end(), state.begin(), state.end());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

// The tolerance is 2e-2, as bf16 has 8 bits and f16 11. The backend runs deterministically and
// otherwise, with the library's epilogues and without. For f32 only deterministic runs are accurate
// enough to compare, since TF32, which other runs use, has no more bits than f16.
TEST_P(CudaArithmetic, In16BitsStaysNearTheInterpreter) {
  const reference::Variables unrounded = variables_;
  for (const Precision precision : {Precision::kBf16, Precision::kF16}) {
    SCOPED_TRACE(name(precision));
    // The deviation of the thirtieth channel is nearly zero, so its normalised samples exceed an
    // f16.
    if (precision == Precision::kF16 && graph().input_shape().back() > 30) continue;
    variables_ = unrounded;
    for (reference::Values& values : variables_.parameters) round_to(precision, values);
    const reference::Result expected =
        reference::run(graph(), variables_, samples_, static_cast<double>(kLossDivisor),
                       Mode::kTrain, as_stored(graph(), precision));
    for (const bool deterministic : {true, false}) {
      for (const PlanOperations& operations :
           {operations_under_test(), PlanOperations(without_epilogues)}) {
        BackendCase subject(graph(), variables_,
                            options_for(precision, Mode::kTrain, true, deterministic, operations));
        subject.step(make_batch(graph(), samples_, kLossDivisor));
        EXPECT_LE(reference::relative_l2(expected.logits, subject.model->logits().f32()), 2e-2);
        for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
          EXPECT_LE(reference::relative_l2(expected.gradients[p], subject.arena.gradient(p).f32()),
                    2e-2)
              << graph().parameters[p].name;
        }
      }
    }
  }
}

bool has_batch_norm(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return std::holds_alternative<BatchNormOp>(node.operation);
  });
}

// Returns the parameter values after a step of plain SGD. The learning rate is large, so that the
// rounding of a value is small beside its gradient.
std::vector<float> trained(BackendCase& subject, const Batch& batch) {
  subject.step(batch);
  subject.backend->update(*make_optimizer({.name = "sgd"}), {.learning_rate = 1024.0F, .step = 1},
                          subject.arena, {}, {0, subject.arena.layout().total()});
  subject.arena.bump_all_versions();
  subject.backend->to_host(subject.arena, {});
  const auto values = subject.arena.values().f32();
  return {values.begin(), values.end()};
}

// Runs four replicas as threads on one device, each with a quarter of the samples.
TEST_P(CudaArithmetic, ReplicasOfOneDeviceUpdateByTheGradientsOfAll) {
  if (has_batch_norm(graph())) return;  // each replica normalises by its own samples
  constexpr std::int64_t kReplicas = 4;
  CaseOptions options = options_for(Precision::kF32, Mode::kTrain, true);
  options.updates_on_device = true;
  BackendCase alone(graph(), variables_, options);
  const Batch batch = make_batch(graph(), samples_, kLossDivisor);
  const std::vector<float> before(alone.arena.values().f32().begin(),
                                  alone.arena.values().f32().end());
  const auto sums = make_shared_gpu_sums(0, kReplicas, std::chrono::seconds(60));
  std::vector<std::unique_ptr<BackendCase>> replicas;
  for (const auto& replica_sums : sums) {
    options.device_collective = replica_sums.get();
    replicas.push_back(std::make_unique<BackendCase>(graph(), variables_, options));
  }
  std::vector<std::vector<float>> found(kReplicas);
  std::vector<std::jthread> threads;
  for (std::int64_t r = 0; r < kReplicas; ++r) {
    threads.emplace_back([&, r] {
      constexpr std::int64_t kShare = kLargestBatch / kReplicas;
      const auto at = static_cast<std::size_t>(r);
      found[at] = trained(*replicas[at], batch.rows(r * kShare, (r + 1) * kShare));
    });
  }
  threads.clear();
  const std::vector<float> expected = trained(alone, batch);
  std::vector<double> step_of_one;
  std::vector<double> step_of_all;
  for (std::size_t i = 0; i < before.size(); ++i) {
    step_of_one.push_back(double{expected[i]} - before[i]);
    step_of_all.push_back(double{found[0][i]} - before[i]);
  }
  EXPECT_LE(reference::relative_l2(step_of_one, step_of_all), f32_tolerance());
  for (std::size_t r = 1; r < kReplicas; ++r) EXPECT_EQ(found[0], found[r]);
}

TEST_P(CudaArithmetic, TimesNoAlgorithmsForASmallerLastBatch) {
  int timed = 0;
  const auto operations = [&timed](cudaStream_t stream) {
    return std::make_unique<CountingOperations>(stream, timed);
  };
  BackendCase subject(graph(), variables_,
                      options_for(Precision::kF32, Mode::kTrain, true, true, operations));
  const bool convolves = std::ranges::any_of(graph().nodes, [](const Node& node) {
    return std::holds_alternative<Conv2dOp>(node.operation) ||
           std::holds_alternative<ConvTranspose2dOp>(node.operation);
  });
  EXPECT_EQ(timed > 0, convolves);
  timed = 0;
  const reference::Samples fewer = reference::first_samples(samples_, kLargestBatch - 1);
  subject.step(make_batch(graph(), fewer, kLossDivisor));
  EXPECT_EQ(timed, 0);
}

INSTANTIATE_TEST_SUITE_P(Small, CudaArithmetic, testing::ValuesIn(small_networks()),
                         [](const auto& network) { return network.param.name; });

}  // namespace
}  // namespace syncopate::cuda
