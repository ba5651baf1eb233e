// Sums of replicas that share one GPU (bucket_sums.h).
#include <fmt/format.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nvtx3/nvtx3.hpp>
#include <string>

#include "models/backend/cuda/bucket_sums.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda_module.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

static_assert(kMostSummedReplicas == kMostReplicasOnOneGpu);

// SharedState holds the state that the replicas on one GPU share. Thread-safe.
class SharedState {
 public:
  SharedState(int device, int replicas, std::chrono::nanoseconds timeout)
      : device_(device), timeout_(timeout), started_(static_cast<std::size_t>(replicas), 0) {
    check(replicas <= kMostSummedReplicas, "the kernel sums this number of replicas");
    use_device(device);
    side_ = make_priority_stream();
    slices_.count = replicas;
  }

  int device() const noexcept { return device_; }

  // Registers the gradients of replica `rank`. All ranks are attached by one thread, before the
  // first step, so no lock is needed.
  void attach(int rank, float* gradients, std::span<const Bucket> buckets) {
    use_device(device_);
    slices_.arenas[rank] = gradients;
    const auto replicas = static_cast<std::size_t>(slices_.count);
    if (buckets_.empty()) {
      for (const Bucket& range : buckets) {
        SharedBucket& bucket = buckets_.emplace_back();
        bucket.range = range;
        bucket.is_summed = make_event();
        for (std::size_t r = 0; r < replicas; ++r) bucket.is_computed.push_back(make_event());
      }
    }
    check(buckets_.size() == buckets.size(), "replicas have the same buckets");
  }

  void start(int rank, BucketId id, cudaStream_t compute) {
    SharedBucket& bucket = buckets_[static_cast<std::size_t>(id)];
    check_cuda(cudaEventRecord(bucket.is_computed[static_cast<std::size_t>(rank)].get(), compute));
    {
      const std::lock_guard lock(mutex_);
      throw_if_aborted();
      ++started_[static_cast<std::size_t>(rank)];
      if (++bucket.arrived < slices_.count) return;
      bucket.arrived = 0;
    }
    const nvtx3::scoped_range range("sum replicas");
    for (const StreamEvent& event : bucket.is_computed) {
      check_cuda(cudaStreamWaitEvent(side_.get(), event.get()));
    }
    sum_replicas(slices_, bucket.range.begin, bucket.range.end - bucket.range.begin, side_.get());
    check_cuda(cudaEventRecord(bucket.is_summed.get(), side_.get()));
    const std::lock_guard lock(mutex_);
    ++bucket.rounds;
    changed_.notify_all();
  }

  // Makes the stream `compute` wait for all sums of step `round` (counted from 1). The host blocks
  // until these sums are started, because a stream can wait only for a recorded event.
  void finish(int rank, std::uint64_t round, cudaStream_t compute) {
    std::unique_lock lock(mutex_);
    for (const SharedBucket& bucket : buckets_) {
      const auto is_started = [&] { return aborted_ || bucket.rounds >= round; };
      if (!changed_.wait_for(lock, timeout_, is_started)) {
        throw PeerError(fmt::format(
            "replica {} waited {} for the gradients of {}, which share its GPU; look what holds "
            "them up",
            rank, in_seconds(timeout_), late(rank)));
      }
      throw_if_aborted();
    }
    lock.unlock();
    for (const SharedBucket& bucket : buckets_) {
      check_cuda(cudaStreamWaitEvent(compute, bucket.is_summed.get()));
    }
  }

  void throw_if_aborted_now() {
    const std::lock_guard lock(mutex_);
    throw_if_aborted();
  }

  void abort(std::string_view reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    aborted_ = true;
    reason_ = reason;
    changed_.notify_all();
  }

  // Waits until no sum runs on the device. The wait ends without a deadline, because a sum is
  // started only after all work that it depends on.
  void wait_for_sums() noexcept {
    cudaSetDevice(device_);
    cudaStreamSynchronize(side_.get());
  }

 private:
  struct SharedBucket {
    Bucket range;
    std::vector<StreamEvent> is_computed;  // by rank: recorded when the rank's gradient is computed
    StreamEvent is_summed;
    int arrived = 0;           // replicas ready for the next sum; guarded by mutex_
    std::uint64_t rounds = 0;  // sums of this bucket started so far; guarded by mutex_
  };

  void throw_if_aborted() const {
    if (aborted_) throw PeerError(reason_);
  }
  // Names the replicas that have started fewer buckets than `rank`, for error messages.
  std::string late(int rank) const {
    std::string names;
    for (std::size_t r = 0; r < started_.size(); ++r) {
      if (started_[r] >= started_[static_cast<std::size_t>(rank)]) continue;
      names += fmt::format("{}replica {}", names.empty() ? "" : " and ", r);
    }
    return names.empty() ? "the others" : names;
  }

  const int device_;
  const std::chrono::nanoseconds timeout_;
  Stream side_;
  ReplicaSlices slices_;
  std::vector<SharedBucket> buckets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> started_;  // started buckets by rank; guarded by mutex_
  bool aborted_ = false;                // guarded by mutex_
  std::string reason_;                  // why sums were aborted; guarded by mutex_
};

class SharedGpuSums final : public BucketSums {
 public:
  SharedGpuSums(std::shared_ptr<SharedState> shared, int rank)
      : shared_(std::move(shared)), rank_(rank) {}

  void join(const Broadcast& /*broadcast*/) override {}
  void leave() noexcept override {}
  void abort(std::string_view reason) noexcept override { shared_->abort(reason); }

  void attach(float* gradients, std::span<const Bucket> buckets) override {
    shared_->attach(rank_, gradients, buckets);
  }
  void start(BucketId bucket, cudaStream_t compute) override {
    shared_->start(rank_, bucket, compute);
  }
  void finish(cudaStream_t compute) override { shared_->finish(rank_, ++round_, compute); }
  void check() override { shared_->throw_if_aborted_now(); }
  void detach() noexcept override { shared_->wait_for_sums(); }

 private:
  const std::shared_ptr<SharedState> shared_;
  const int rank_;
  std::uint64_t round_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<BucketSums>> make_shared_gpu_sums(int device, int replicas,
                                                              std::chrono::nanoseconds timeout) {
  const auto shared = std::make_shared<SharedState>(device, replicas, timeout);
  std::vector<std::unique_ptr<BucketSums>> ranks;
  ranks.reserve(static_cast<std::size_t>(replicas));
  for (int rank = 0; rank < replicas; ++rank) {
    ranks.push_back(std::make_unique<SharedGpuSums>(shared, rank));
  }
  return ranks;
}

}  // namespace syncopate::cuda
