// Tests that CUDA streams wait for each other where they must: at any progress of the streams a
// step has the bits of synchronous execution. Runs on the emulated device only.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "models/backend/cuda/cuda_backend.h"
#include "tests/models/backend/backend_case.h"
#include "tests/models/backend/cuda/batch_upload_case.h"
#include "tests/models/backend/cuda/device_under_test.h"
#include "tests/models/backend/cuda/emulated_stream.h"
#include "tests/models/backend/small_networks.h"

namespace syncopate::cuda {
namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kLossDivisor = 4;
// Each of some five streams has one of three paces; with this number of seeds, every pair of
// streams is run in each order.
constexpr std::uint64_t kSeeds = 24;

class StreamOrder : public testing::TestWithParam<SmallNetwork> {
 protected:
  const Graph& graph() const { return GetParam().graph; }
  Batch batch() const { return make_batch(graph(), samples_, kLossDivisor); }

  BackendCase make_case(Precision precision, bool updates_on_device) const {
    return {
        graph(),
        variables_,
        {.batch_size = kBatch,
         .bucket_bytes = 256,
         .updates_on_device = updates_on_device,
         .make_backend = [precision] {
           return make_cuda_backend(
               {.device = {DeviceKind::kCuda, 0}, .precision = precision, .deterministic = true},
               operations_under_test());
         }}};
  }

  // Compares the bits that `run` returns when all work is done at once with the bits at every pace.
  template <typename Run>
  static void expect_the_same_bits(const Run& run) {
    const std::vector<float> expected = run();
    for (const float value : expected) ASSERT_EQ(value, value) << "not a number";
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const EmulatedPace pace(seed);
      ASSERT_EQ(expected, run()) << "at the pace of seed " << seed;
    }
  }

  reference::Variables variables_ = reference::random_variables(graph(), 21);
  reference::Samples samples_ = reference::random_samples(graph(), kBatch, 22);
};

// The test writes values as central storage and parameter servers do: just before a step uses them,
// and again as soon as the step is over.
TEST_P(StreamOrder, ValuesAreThereBeforeTheyAreUsed) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    expect_the_same_bits([&] {
      BackendCase subject = make_case(precision, false);
      ParameterArena& arena = subject.arena;
      std::vector<float> values(arena.values().f32().begin(), arena.values().f32().end());
      std::vector<float> seen;
      for (int step = 0; step < 3; ++step) {
        std::ranges::fill(arena.values().f32(), std::numeric_limits<float>::quiet_NaN());
        subject.model->start_forward(batch(), [&](BucketId bucket) {
          const Bucket& range = arena.buckets()[static_cast<std::size_t>(bucket)];
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            arena.values().f32()[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(i)];
          }
          arena.bump_version(bucket);
        });
        const Scores scores = subject.model->scores();
        std::ranges::fill(arena.values().f32(), std::numeric_limits<float>::quiet_NaN());
        subject.model->backward([](BucketId) {});
        seen.push_back(static_cast<float>(scores.loss));
        const auto gradients = arena.gradients().f32();
        seen.insert(seen.end(), gradients.begin(), gradients.end());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.01F * gradients[i];
      }
      return seen;
    });
  }
}

// A restore replaces values while the device still updates the previous ones.
TEST_P(StreamOrder, ValuesAreNotReplacedWhileTheyAreUsed) {
  expect_the_same_bits([&] {
    BackendCase subject = make_case(Precision::kBf16, true);
    ParameterArena& arena = subject.arena;
    const auto optimizer = make_optimizer({.name = "momentum"});
    const std::vector<Tensor> slots{make_host_tensor({arena.layout().total()}, DType::kF32)};
    for (int step = 1; step <= 4; ++step) {
      subject.step(batch());
      subject.backend->update(*optimizer, {.learning_rate = 0.01F, .step = step}, arena, slots,
                              {0, arena.layout().total()});
      arena.bump_all_versions();
      if (step == 2) subject.set_values(variables_);
    }
    subject.backend->to_host(arena, slots);
    return std::vector<float>(arena.values().f32().begin(), arena.values().f32().end());
  });
}

std::vector<SmallNetwork> some_networks() {
  std::vector<SmallNetwork> all = small_networks();
  std::erase_if(all,
                [](const SmallNetwork& network) { return network.graph.parameters.size() < 4; });
  all.resize(std::min<std::size_t>(all.size(), 2));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Small, StreamOrder, testing::ValuesIn(some_networks()),
                         [](const auto& network) { return network.param.name; });

TEST(StreamOrderOfUploads, ABatchIsReadBeforeItsMemoryIsUsedAgain) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const EmulatedPace pace(seed);
    ASSERT_EQ(upload_batches(300000, kUploadedLengths), kUploadedValues)
        << "at the pace of seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate::cuda
