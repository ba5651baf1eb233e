// Tests batch norm with statistics over replicas: two models with a part of the batch each agree
// with one model that has the whole batch.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "models/backend/backend.h"
#include "models/base/random.h"
#include "models/zoo/zoo.h"
#include "tests/reference/random_case.h"

namespace syncopate {
namespace {

constexpr int kReplicas = 2;

// Sums values over two replicas, which are threads, in replica order.
class SharedSums {
 public:
  void sum(int replica, std::span<double> values) {
    parts_[static_cast<std::size_t>(replica)].assign(values.begin(), values.end());
    arrived_.arrive_and_wait();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = parts_[0][i] + parts_[1][i];
    arrived_.arrive_and_wait();
  }

 private:
  std::array<std::vector<double>, kReplicas> parts_;
  std::barrier<> arrived_{kReplicas};
};

class ReducerOfReplica final : public StatisticsReducer {
 public:
  ReducerOfReplica(SharedSums& shared, int replica) : shared_(shared), replica_(replica) {}
  void sum(std::span<double> values) override { shared_.sum(replica_, values); }

 private:
  SharedSums& shared_;
  const int replica_;
};

// A TrainedReplica is one replica of resnet20 after one step on its part of the batch.
struct TrainedReplica {
  TrainedReplica(const Graph& network, int lanes, const Batch& part, StatisticsReducer* reducer)
      : arena(network.parameter_layout(), plan_buckets(network.parameter_layout(), 1 << 20)),
        state(network.state_layout()),
        backend(make_cpu_backend(lanes)) {
    fill_initial_values(network, 5, arena);
    fill_initial_state(network, state);
    const auto model =
        backend->compile(network, arena, state, {.batch_size = 8, .statistics = reducer});
    scores = model->forward(part, [](BucketId) {});
    model->backward([](BucketId) {});
  }

  ParameterArena arena;
  StateBlock state;
  std::unique_ptr<Backend> backend;
  Scores scores;
};

std::vector<double> in_double(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// The test parameter is the number of samples of replica 0. Replica 1 has the others, possibly
// none.
class SynchronisedBatchNorm : public testing::TestWithParam<int> {};

TEST_P(SynchronisedBatchNorm, AgreesWithOneModelThatHasTheWholeBatch) {
  constexpr std::int64_t kSamples = 8;
  const Graph graph = resnet20({.sample_shape = {32, 32, 3}, .classes = 10, .input = {}});
  Batch whole = {{make_host_tensor({kSamples, 32, 32, 3}, DType::kU8)},
                 make_host_tensor({kSamples}, DType::kI32),
                 kSamples,
                 kSamples};
  const RandomStream random(9, 1);
  for (std::size_t i = 0; i < whole.inputs[0].u8().size(); ++i)
    whole.inputs[0].u8()[i] = static_cast<std::uint8_t>(random.bits(i));
  for (std::size_t i = 0; i < kSamples; ++i) whole.target.i32()[i] = static_cast<std::int32_t>(i);
  const TrainedReplica one(graph, 1, whole, nullptr);

  SharedSums shared;
  std::array<std::unique_ptr<TrainedReplica>, kReplicas> halves;
  {
    std::vector<std::jthread> threads;
    threads.reserve(kReplicas);
    for (int r = 0; r < kReplicas; ++r) {
      threads.emplace_back([&, r] {
        const std::int64_t begin = r == 0 ? 0 : GetParam();
        const std::int64_t end = r == 0 ? GetParam() : kSamples;
        const Batch part = whole.rows(begin, end);
        ReducerOfReplica reducer(shared, r);
        halves[static_cast<std::size_t>(r)] =
            std::make_unique<TrainedReplica>(graph, 2, part, &reducer);
      });
    }
  }
  EXPECT_NEAR(halves[0]->scores.loss + halves[1]->scores.loss, one.scores.loss, 1e-5);
  std::vector<double> sum = in_double(halves[0]->arena.gradients().f32());
  const std::vector<double> second = in_double(halves[1]->arena.gradients().f32());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
  // The tolerance of 1e-5 covers sums in another order through 20 layers.
  EXPECT_LE(reference::relative_l2(in_double(one.arena.gradients().f32()), sum), 1e-5);
  for (const auto& half : halves) {
    EXPECT_LE(reference::relative_l2(in_double(one.state.values.f32()), half->state.values.f32()),
              1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Splits, SynchronisedBatchNorm, testing::Values(4, 7, 8));

}  // namespace
}  // namespace syncopate
