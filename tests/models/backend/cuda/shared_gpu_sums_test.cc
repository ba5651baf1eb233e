// Tests sums of replicas that share a GPU. The replicas are threads on an emulated GPU.
#include "models/backend/cuda/bucket_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "models/backend/cuda/device.h"
#include "models/base/errors.h"
#include "tests/models/backend/cuda/emulated_journal.h"
#include "tests/models/backend/cuda/emulated_stream.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::cuda {
namespace {

constexpr std::array kBuckets = {Bucket{64, 192}, Bucket{0, 64}};
constexpr std::int64_t kElements = 192;

struct Replica {
  explicit Replica(std::unique_ptr<BucketSums> joined, float value)
      : gradients(kElements, value), sums(std::move(joined)) {
    sums->attach(gradients.data(), kBuckets);
  }
  void step() {
    for (BucketId b = 0; b < 2; ++b) sums->start(b, compute.get());
    sums->finish(compute.get());
  }
  std::vector<float> gradients;
  Stream compute = make_stream();
  std::unique_ptr<BucketSums> sums;
};

std::vector<std::unique_ptr<Replica>> make_replicas(
    int count, std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  std::vector<std::unique_ptr<Replica>> replicas;
  for (auto& sums : make_shared_gpu_sums(0, count, timeout)) {
    const auto value = static_cast<float>(replicas.size() + 1);
    replicas.push_back(std::make_unique<Replica>(std::move(sums), value));
  }
  return replicas;
}

TEST(SharedGpuSums, AddWhatAllReplicasHaveStepAfterStep) {
  const auto replicas = make_replicas(3);
  std::vector<std::jthread> threads;
  for (const auto& replica : replicas) {
    threads.emplace_back([&] {
      for (int step = 0; step < 20; ++step) {
        std::ranges::fill(replica->gradients, static_cast<float>(step));
        replica->step();
        // A replica's gradients stay unchanged while the other replicas continue.
        EXPECT_EQ(replica->gradients, std::vector<float>(kElements, 3.0F * step));
      }
    });
  }
}

TEST(SharedGpuSums, BeginBehindEveryBackwardAndEndBeforeEveryUpdate) {
  const auto replicas = make_replicas(2);
  take_calls();
  for (const auto& replica : replicas) replica->sums->start(0, replica->compute.get());
  for (const auto& replica : replicas) replica->sums->start(1, replica->compute.get());
  std::vector<EmulatedCall> calls = take_calls();
  // For each bucket both replicas record an event, then the side stream waits for both events, and
  // records one.
  ASSERT_EQ(calls.size(), 10U);
  const void* const side = calls[4].stream;
  for (const std::size_t first : {0U, 5U}) {
    EXPECT_EQ(calls[first].stream, replicas[0]->compute.get());
    EXPECT_EQ(calls[first + 1].stream, replicas[1]->compute.get());
    for (const std::size_t r : {0U, 1U}) {
      EXPECT_EQ(calls[first + 2 + r].what, "wait");
      EXPECT_EQ(calls[first + 2 + r].stream, side);
      EXPECT_EQ(calls[first + 2 + r].event, calls[first + r].event);
    }
    EXPECT_EQ(calls[first + 4].what, "record");
  }
  replicas[1]->sums->finish(replicas[1]->compute.get());
  const std::vector<EmulatedCall> waits = take_calls();
  ASSERT_EQ(waits.size(), 2U);
  for (const std::size_t b : {0U, 1U}) {
    EXPECT_EQ(waits[b].stream, replicas[1]->compute.get());
    EXPECT_EQ(waits[b].event, calls[5 * b + 4].event);
  }
}

// The emulated streams progress independently, as a device's do.
TEST(SharedGpuSums, AreReadyForTheUpdateInAnyStreamOrder) {
  constexpr std::size_t kBytes = kElements * sizeof(float);
  const std::array<std::vector<float>, 2> computed = {std::vector<float>(kElements, 3.0F),
                                                      std::vector<float>(kElements, 4.0F)};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::array<std::vector<float>, 2> used;
    const EmulatedPace pace(seed);
    const auto replicas = make_replicas(2);
    for (std::size_t r = 0; r < 2; ++r) {  // the backward pass of each replica
      Replica& replica = *replicas[r];
      used[r].resize(kElements);
      cudaMemcpyAsync(replica.gradients.data(), computed[r].data(), kBytes,
                      cudaMemcpyDeviceToDevice, replica.compute.get());
      for (BucketId b = 0; b < 2; ++b) replica.sums->start(b, replica.compute.get());
    }
    for (std::size_t r = 0; r < 2; ++r) {  // the update of each replica
      Replica& replica = *replicas[r];
      replica.sums->finish(replica.compute.get());
      cudaMemcpyAsync(used[r].data(), replica.gradients.data(), kBytes, cudaMemcpyDeviceToDevice,
                      replica.compute.get());
      cudaStreamSynchronize(replica.compute.get());
      ASSERT_EQ(used[r], std::vector<float>(kElements, 7.0F)) << "seed " << seed;
    }
  }
}

TEST(SharedGpuSums, NameTheReplicaThatDoesNotArrive) {
  const auto replicas = make_replicas(3, std::chrono::milliseconds(20));
  for (const int r : {0, 2}) {
    replicas[static_cast<std::size_t>(r)]->sums->start(
        0, replicas[static_cast<std::size_t>(r)]->compute.get());
  }
  EXPECT_TRUE(contains(
      message_of<PeerError>([&] { replicas[0]->sums->finish(replicas[0]->compute.get()); }),
      "replica 0 waited 0.02 s for the gradients of replica 1,"));
}

TEST(SharedGpuSums, WakeWaitingReplicasWhenOneFails) {
  const auto replicas = make_replicas(2);
  std::jthread failing([&] { replicas[1]->sums->abort("replica 1 failed: no memory"); });
  EXPECT_EQ(message_of<PeerError>([&] { replicas[0]->step(); }), "replica 1 failed: no memory");
}

}  // namespace
}  // namespace syncopate::cuda
