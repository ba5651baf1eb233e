#include "models/backend/cuda/nccl_sums.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nvtx3/nvtx3.hpp>
#include <optional>
#include <string>
#include <thread>

#include "models/backend/cuda/device.h"
#include "models/base/deadline.h"
#include "models/base/environment.h"
#include "models/base/errors.h"

namespace syncopate::cuda {
namespace {

// The timeout for connecting the GPUs by NCCL. All tasks have already started then, so it covers
// only NCCL's search for connections.
constexpr std::chrono::seconds kNcclConnectTimeout{120};
constexpr std::chrono::seconds kNcclFinalizeTimeout{5};
constexpr std::chrono::microseconds kNcclPollInterval{20};
constexpr const char* kSums = "the sums of a step";
// The advice at the end of every error message about NCCL.
constexpr const char* kAdvice =
    "; NCCL_DEBUG=INFO shows more, and --collective ring does without NCCL";

bool is_error(ncclResult_t code) { return code != ncclSuccess && code != ncclInProgress; }

class NcclSums final : public BucketSums {
 public:
  NcclSums(const DeviceRank& rank, const NcclTable& nccl, std::chrono::milliseconds watch_interval)
      : rank_(rank), nccl_(nccl) {
    use_device(rank.device.index);
    side_ = make_priority_stream();
    are_summed_ = make_event();
    watch_ = std::jthread([this, watch_interval](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "nccl-watch");
      watch(stop, watch_interval);
    });
  }
  NcclSums(const NcclSums&) = delete;
  NcclSums& operator=(const NcclSums&) = delete;
  ~NcclSums() override {
    watch_.request_stop();
    watch_.join();
    abort_communicator();
  }

  void join(const Broadcast& broadcast) override {
    // NCCL_COMM_BLOCKING=1 would override config.blocking = 0 below, and a blocking NCCL call could
    // not be ended by a deadline.
    if (Environment::of_process().get("NCCL_COMM_BLOCKING").value_or("0") != "0") {
      throw UsageError(
          "NCCL_COMM_BLOCKING is set: then no thread could stop waiting for a peer that is "
          "lost; unset it");
    }
    ncclUniqueId id{};
    const std::string what = fmt::format("all {} replicas to meet", rank_.size);
    const auto timeout = std::min<std::chrono::nanoseconds>(rank_.timeout, kNcclConnectTimeout);
    if (rank_.rank == 0) require_begun(nccl_.get_unique_id(&id));
    broadcast(std::as_writable_bytes(std::span(&id, 1)));
    use_device(rank_.device.index);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t code = ncclSuccess;
    {
      const std::lock_guard lock(calls_);
      code = nccl_.init_rank(&communicator_, rank_.size, id, rank_.rank, &config);
    }
    // ncclCommInitRank is non-blocking: `code` is the status of a call that still contacts the
    // peers. succeed() waits for its result.
    if (!may_be_a_peers(code)) require_begun(code);
    succeed(code, timeout, what);
  }

  void leave() noexcept override {
    const Deadline deadline = Deadline::after(kNcclFinalizeTimeout);
    ncclResult_t code = ncclSuccess;
    {
      const std::lock_guard lock(calls_);
      if (communicator_ == nullptr || is_given_up()) return;
      code = nccl_.finalize(communicator_);
    }
    while (code == ncclInProgress && !deadline.passed() && !is_given_up()) {
      std::this_thread::sleep_for(kNcclPollInterval);
      code = state();
    }
    if (code != ncclSuccess) return fail("another replica did not leave NCCL");
    const std::lock_guard lock(calls_);
    if (communicator_ != nullptr) nccl_.destroy(std::exchange(communicator_, nullptr));
  }

  void abort(std::string_view reason) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason.empty() ? "the sum was given up" : reason;
    changed_.notify_all();
  }

  void attach(float* gradients, std::span<const Bucket> buckets) override {
    use_device(rank_.device.index);
    gradients_ = gradients;
    buckets_.assign(buckets.begin(), buckets.end());
    are_computed_.clear();
    for (std::size_t b = 0; b < buckets.size(); ++b) are_computed_.push_back(make_event());
  }

  void start(BucketId bucket, cudaStream_t compute) override {
    const nvtx3::scoped_range scope("all-reduce");
    check();
    const auto b = static_cast<std::size_t>(bucket);
    check_cuda(cudaEventRecord(are_computed_[b].get(), compute));
    check_cuda(cudaStreamWaitEvent(side_.get(), are_computed_[b].get()));
    float* const slice = gradients_ + buckets_[b].begin;
    const auto count = static_cast<std::size_t>(buckets_[b].end - buckets_[b].begin);
    ncclResult_t code = ncclSuccess;
    {
      const std::lock_guard lock(calls_);
      syncopate::check(communicator_ != nullptr || is_given_up(), "sums begin after join()");
      if (communicator_ != nullptr) {
        code =
            nccl_.all_reduce(slice, slice, count, ncclFloat32, ncclSum, communicator_, side_.get());
      }
    }
    succeed(code, rank_.timeout, fmt::format("the sum of bucket {}", bucket));
  }

  void finish(cudaStream_t compute) override {
    check();
    {
      // The deadline of the sums is set first, since the watch thread must not apply the previous
      // step's deadline to the new event.
      const std::lock_guard lock(mutex_);
      until_ = Deadline::after(rank_.timeout);
    }
    check_cuda(cudaEventRecord(are_summed_.get(), side_.get()));
    check_cuda(cudaStreamWaitEvent(compute, are_summed_.get()));
  }

  void check() override {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) throw PeerError(reason_);
  }

  void detach() noexcept override {
    if (is_given_up()) abort_communicator();
    cudaSetDevice(rank_.device.index);
    cudaStreamSynchronize(side_.get());
  }

 private:
  // Returns whether a lost peer may have caused the NCCL error; rank 0 is a peer that the others
  // contact.
  bool may_be_a_peers(ncclResult_t code) const {
    return code == ncclRemoteError || (code == ncclSystemError && rank_.rank != 0);
  }

  // Throws if an NCCL call failed by itself, without any peer's part in it: DeviceError, or
  // PeerError as in check().
  void require_begun(ncclResult_t code) {
    check();
    if (!is_error(code)) return;
    const std::string reason = describe(code, "began to meet the others");
    fail(reason);
    throw DeviceError(reason);
  }

  // Returns when the NCCL call has succeeded, and polls while it is in progress. Throws PeerError.
  void succeed(ncclResult_t code, std::chrono::nanoseconds timeout, const std::string& what) {
    const Deadline deadline = Deadline::after(timeout);
    while (code == ncclInProgress) {
      check();
      code = state();
      if (code != ncclInProgress) break;
      if (deadline.passed()) fail(describe_late(what, timeout));
      std::this_thread::sleep_for(kNcclPollInterval);
    }
    if (is_error(code)) fail(describe(code, "waited for " + what));
    check();
  }

  ncclResult_t state() noexcept {
    const std::lock_guard lock(calls_);
    if (communicator_ == nullptr) return ncclSuccess;  // check() then throws the reason
    ncclResult_t found = ncclSuccess;
    const ncclResult_t code = nccl_.get_async_error(communicator_, &found);
    return code == ncclSuccess ? found : code;
  }

  std::string describe(ncclResult_t code, std::string_view action) {
    std::string error = nccl_.error_string(code);
    {
      const std::lock_guard lock(calls_);
      const char* const more = communicator_ == nullptr ? nullptr : nccl_.last_error(communicator_);
      if (more != nullptr && *more != '\0') error += fmt::format(": {}", more);
    }
    return fmt::format("NCCL failed ({}) while {} {}{}", error, own_name(), action, kAdvice);
  }
  std::string own_name() const {
    return fmt::format("replica {} ({})", rank_.rank, to_string(rank_.device));
  }

  std::string describe_late(const std::string& what, std::chrono::nanoseconds timeout) const {
    return fmt::format(
        "{} waited {} for {} over NCCL: another replica did not come, or the way to its GPU is "
        "blocked{}",
        own_name(), in_seconds(timeout), what, kAdvice);
  }

  // Returns whether the last sum given to the device has missed its deadline.
  bool is_stuck() {
    const std::lock_guard lock(mutex_);
    if (!until_ || !until_->passed()) return false;
    // A CUDA error of the event other than "not ready" is ignored here: the replica's thread, which
    // waits for the device, gets and reports it.
    if (cudaEventQuery(are_summed_.get()) == cudaErrorNotReady) return true;
    until_.reset();
    return false;
  }

  void fail(std::string_view reason) noexcept {
    abort(reason);
    abort_communicator();
  }

  bool is_given_up() noexcept {
    const std::lock_guard lock(mutex_);
    return !reason_.empty();
  }

  void abort_communicator() noexcept {
    const std::lock_guard lock(calls_);
    if (communicator_ != nullptr) nccl_.abort(std::exchange(communicator_, nullptr));
  }

  void watch(const std::stop_token& stop, std::chrono::milliseconds interval) {
    cudaSetDevice(rank_.device.index);
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, stop, interval, [this] { return !reason_.empty(); });
      }
      if (is_given_up()) return abort_communicator();
      const ncclResult_t found = state();
      if (is_error(found)) fail(describe(found, std::string("waited for ") + kSums));
      if (is_stuck()) fail(describe_late(kSums, rank_.timeout));
    }
  }

  const DeviceRank rank_;
  const NcclTable& nccl_;
  Stream side_;
  StreamEvent are_summed_;  // recorded on side_ after the sums of all buckets of a step
  float* gradients_ = nullptr;
  std::vector<Bucket> buckets_;
  std::vector<StreamEvent> are_computed_;  // recorded on the compute stream, by bucket

  // calls_ is locked during every NCCL call on the communicator, which only one thread at a time
  // may use. It is held briefly, as calls of a non-blocking communicator return immediately.
  std::mutex calls_;
  ncclComm_t communicator_ = nullptr;  // guarded by calls_

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string reason_;             // guarded by mutex_; why sums were aborted
  std::optional<Deadline> until_;  // the deadline of are_summed_; guarded by mutex_
  // The thread that watches NCCL's sums. If ncclCommAbort never returns, it ends with the process.
  std::jthread watch_;
};

}  // namespace

std::unique_ptr<BucketSums> make_nccl_sums(const DeviceRank& rank, const NcclTable& nccl,
                                           std::chrono::milliseconds watch_interval) {
  return std::make_unique<NcclSums>(rank, nccl, watch_interval);
}

}  // namespace syncopate::cuda
