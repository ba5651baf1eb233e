// Tests sums over replicas on real GPUs, by our kernel and by NCCL; skipped if there is no GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/nccl_sums.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/random.h"
#include "models/tensor/sums.h"
#include "tests/models/backend/cuda/device_under_test.h"

namespace syncopate::cuda {
namespace {

constexpr std::int64_t kElements = 3 * kBlockElements;
// The buckets are in the order of the backward pass; the size of the second bucket is no multiple
// of a pack.
constexpr std::array kBuckets = {Bucket{kBlockElements + 65, kElements},
                                 Bucket{0, kBlockElements + 65}};

std::vector<float> random_gradients(int rank) {
  const RandomStream random(3, static_cast<std::uint64_t>(rank));
  std::vector<float> gradients;
  gradients.reserve(kElements);
  for (std::int64_t i = 0; i < kElements; ++i) {
    // The gradients differ widely in size, so that another order of additions gives other bits.
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    gradients.push_back(static_cast<float>((uniform - 0.5) / (0.01 + uniform)));
  }
  return gradients;
}

std::vector<float> summed_on_the_host(std::vector<std::vector<float>> replicas) {
  const int n = static_cast<int>(replicas.size());
  std::vector<float*> slices;
  slices.reserve(replicas.size());
  for (std::vector<float>& replica : replicas) slices.push_back(replica.data());
  for (std::int64_t begin = 0; begin < kElements; begin += kBlockElements) {
    sum_kernels(detect_isa())
        .sum_to_all_f32(slices.data(), n, first_addend(begin, n), begin, kBlockElements);
  }
  return replicas.front();
}

// Gradients holds a replica's gradients on its device.
class Gradients {
 public:
  Gradients(BucketSums& sums, int device, const std::vector<float>& values)
      : sums_(sums), device_(device) {
    use_device(device);
    compute_ = make_stream();
    block_ = make_device_buffer(values.size() * sizeof(float), device);
    copy_to_device(block_->data(), std::as_bytes(std::span(values)));
    sums.attach(reinterpret_cast<float*>(block_->data()), kBuckets);
  }
  void start() {
    use_device(device_);
    for (BucketId b = 0; b < 2; ++b) sums_.start(b, compute_.get());
    sums_.finish(compute_.get());
  }
  // Waits for the device and returns the gradients.
  std::vector<float> values() const {
    std::vector<float> found(kElements);
    check_cuda(cudaMemcpyAsync(found.data(), block_->data(), found.size() * sizeof(float),
                               cudaMemcpyDeviceToHost, compute_.get()));
    check_cuda(cudaStreamSynchronize(compute_.get()));
    return found;
  }

 private:
  BucketSums& sums_;
  int device_;
  Stream compute_;
  std::shared_ptr<Buffer> block_;
};

class GpuSums : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = why_no_device()) GTEST_SKIP() << *reason;
  }
  static std::unique_ptr<BucketSums> nccl(int rank, int size, std::chrono::nanoseconds timeout) {
    return make_nccl_sums(
        {.rank = rank, .size = size, .device = {DeviceKind::kCuda, rank}, .timeout = timeout},
        nccl_library());
  }
};

TEST_F(GpuSums, OfReplicasOnOneGpuHaveTheBitsOfTheHost) {
  constexpr int kReplicas = 4;
  std::vector<std::vector<float>> gradients;
  gradients.reserve(kReplicas);
  for (int r = 0; r < kReplicas; ++r) gradients.push_back(random_gradients(r));
  const std::vector<float> expected = summed_on_the_host(gradients);
  const auto sums = make_shared_gpu_sums(0, kReplicas, std::chrono::seconds(60));
  std::vector<std::unique_ptr<Gradients>> replicas;
  for (std::size_t r = 0; r < kReplicas; ++r) {
    replicas.push_back(std::make_unique<Gradients>(*sums[r], 0, gradients[r]));
  }
  std::vector<std::jthread> threads;
  threads.reserve(kReplicas);
  for (const auto& replica : replicas) {
    threads.emplace_back([&] {
      replica->start();
      EXPECT_EQ(replica->values(), expected);
    });
  }
}

TEST_F(GpuSums, OfOneReplicaOverNcclAreItsGradients) {
  const auto sums = nccl(0, 1, std::chrono::seconds(60));
  sums->join([](std::span<std::byte>) {});
  Gradients replica(*sums, 0, random_gradients(0));
  for (int step = 0; step < 3; ++step) replica.start();
  EXPECT_EQ(replica.values(), random_gradients(0));
  EXPECT_NO_THROW(sums->check());
  sums->detach();
  sums->leave();
}

TEST_F(GpuSums, GiveUpOnAReplicaThatNeverConnects) {
  const auto sums = nccl(0, 2, std::chrono::seconds(2));
  EXPECT_THROW(sums->join([](std::span<std::byte>) {}), PeerError);
}

// Runs two replicas, the second of which may not take part in the sum.
void run_two(bool second_joins, std::chrono::nanoseconds timeout) {
  ncclUniqueId id{};
  std::array<std::unique_ptr<BucketSums>, 2> sums;
  for (int r = 0; r < 2; ++r) {
    sums[static_cast<std::size_t>(r)] =
        make_nccl_sums({.rank = r, .size = 2, .device = {DeviceKind::kCuda, r}, .timeout = timeout},
                       nccl_library());
  }
  ASSERT_EQ(nccl_library().get_unique_id(&id), ncclSuccess);
  const std::vector<float> expected =
      summed_on_the_host({random_gradients(0), random_gradients(1)});
  std::vector<std::jthread> threads;
  threads.reserve(2);
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      BucketSums& mine = *sums[static_cast<std::size_t>(r)];
      mine.join([&](std::span<std::byte> bytes) {
        std::ranges::copy(std::as_bytes(std::span(&id, 1)), bytes.begin());
      });
      Gradients replica(mine, r, random_gradients(r));
      if (r == 0 || second_joins) {
        try {
          replica.start();
          const std::vector<float> found = replica.values();
          mine.check();
          EXPECT_EQ(found, expected);  // the order of two addends does not matter
          EXPECT_TRUE(second_joins);
        } catch (const PeerError& error) {
          EXPECT_FALSE(second_joins) << error.what();
        }
      }
      mine.detach();
      if (second_joins) mine.leave();
    });
  }
}

class GpuSumsOfReplicasWithAGpuEach : public GpuSums {
 protected:
  void SetUp() override {
    int count = 0;
    cudaGetDeviceCount(&count);
    if (count < 2) GTEST_SKIP() << "two GPUs are wanted; here: " << count;
  }
};

TEST_F(GpuSumsOfReplicasWithAGpuEach, AreTheirSums) { run_two(true, std::chrono::seconds(60)); }

TEST_F(GpuSumsOfReplicasWithAGpuEach, AreGivenUpWhenAReplicaDoesNotJoin) {
  run_two(false, std::chrono::seconds(3));
}

}  // namespace
}  // namespace syncopate::cuda
