// Fixtures for the tests of convolutions that also sum their output: fp16 networks on the emulated
// device, and the interpreter's results for equal values.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "models/backend/cuda/cuda_backend.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/cuda/emulated_operations.h"
#include "tests/models/backend/cuda/stored_in_16_bits.h"

namespace syncopate::cuda {

inline constexpr std::int64_t kBatch = 8;
inline constexpr std::int64_t kLossDivisor = 13;  // counts all replicas' samples of a step
// The tolerance is that of cuda_arithmetic_test: f16 has 11 bits.
inline constexpr double kTolerance = 2e-2;

struct Requests {
  int asked = 0;
  int granted = 0;
  bool operator==(const Requests&) const = default;
};

// Records which convolutions are asked for sums of their output.
class NotingOperations final : public Operations {
 public:
  NotingOperations(std::unique_ptr<Operations> emulated, Requests& requests)
      : emulated_(std::move(emulated)), requests_(requests) {}
  std::string description() const override { return emulated_->description(); }
  std::unique_ptr<Convolution> convolution(ConvPass pass, const ConvShape& shape,
                                           const PlanLimits& limits) override {
    const bool with_sums = pass == ConvPass::kForwardWithSums;
    if (with_sums) ++requests_.asked;
    auto planned = emulated_->convolution(pass, shape, limits);
    if (with_sums && planned != nullptr) ++requests_.granted;
    return planned;
  }
  std::unique_ptr<Product> product(const ProductShape& shape, const PlanLimits& limits) override {
    return emulated_->product(shape, limits);
  }

 private:
  const std::unique_ptr<Operations> emulated_;
  Requests& requests_;
};

struct SumsOptions {
  Precision precision = Precision::kF16;
  EmulatedSums sums = EmulatedSums::kOfStored;
  Mode mode = Mode::kTrain;
  bool fuse = true;
  bool updates_on_device = false;
  bool captures = true;
  StatisticsReducer* statistics = nullptr;
};

// SumsSubject is a network on the device, with the operations that it requested.
struct SumsSubject {
  SumsSubject(const Graph& graph, const reference::Variables& variables, const SumsOptions& options)
      : on_device(graph, variables,
                  {.batch_size = kBatch,
                   .fuse = options.fuse,
                   .mode = options.mode,
                   .updates_on_device = options.updates_on_device,
                   .statistics = options.statistics,
                   .make_backend = [options, this] {
                     return make_cuda_backend({.device = {DeviceKind::kCuda, 0},
                                               .precision = options.precision,
                                               .deterministic = false,
                                               .captures_steps = options.captures,
                                               .loss_scaling = {.first = 64.0F}},
                                              [options, this](cudaStream_t stream) {
                                                return std::make_unique<NotingOperations>(
                                                    make_emulated_operations(stream, options.sums),
                                                    requests);
                                              });
                   }}) {}
  Requests requests;  // outlives on_device, which counts into it
  BackendCase on_device;
};

// SumsCase is a network with values and samples that f16 represents exactly.
struct SumsCase {
  Graph graph;
  reference::Variables variables;
  reference::Samples samples;

  explicit SumsCase(Graph from)
      : graph(std::move(from)),
        variables(reference::random_variables(graph, 21)),
        samples(reference::random_samples(graph, kBatch, 22)) {
    for (reference::Values& values : variables.parameters) round_to(Precision::kF16, values);
  }
  reference::Result expected(const reference::Samples& of) const {
    return reference::run(graph, variables, of, static_cast<double>(kLossDivisor), Mode::kTrain,
                          as_stored(graph, Precision::kF16));
  }
  Batch batch(std::int64_t count) const {
    return make_batch(graph, reference::first_samples(samples, count), kLossDivisor);
  }
};

inline void expect_near(const reference::Result& expected, const Graph& graph, BackendCase& found) {
  EXPECT_LE(reference::relative_l2(expected.logits, found.model->logits().f32()), kTolerance);
  for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
    EXPECT_LE(reference::relative_l2(expected.gradients[p], found.arena.gradient(p).f32()),
              kTolerance)
        << graph.parameters[p].name;
  }
  for (std::size_t s = 0; s < expected.state.size(); ++s) {
    EXPECT_LE(reference::relative_l2(expected.state[s], found.state.value(s).f32()), kTolerance)
        << graph.state[s].name;
  }
}

}  // namespace syncopate::cuda
