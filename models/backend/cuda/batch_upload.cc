#include "models/backend/cuda/batch_upload.h"

#include <algorithm>
#include <span>

#include "models/backend/cuda/device.h"

namespace syncopate::cuda {
namespace {

// A smaller batch is copied to pinned memory in less time than the host would wait for its upload.
constexpr std::size_t kLeastDirectBytes = std::size_t{1} << 20;
// Micro-batches are as many batches; a source that makes new memory for each batch keeps no more.
constexpr std::size_t kMostPinned = 64;

}  // namespace

BatchUpload::BatchUpload(std::size_t most_bytes, int device)
    : copies_(make_stream()), block_(make_device_buffer(most_bytes, device)) {
  for (Slot& slot : slots_) {
    slot.pinned = make_pinned_buffer(most_bytes);
    slot.arrived = make_device_buffer(most_bytes, device);
    slot.has_arrived = make_event();
    slot.is_taken = make_event();
  }
}

// Waits for uploads in flight, because they read pinned memory that is about to be freed.
BatchUpload::~BatchUpload() { cudaStreamSynchronize(copies_.get()); }

void BatchUpload::start(const Tensor& batch, cudaStream_t compute) {
  const std::span<const std::byte> bytes = batch.bytes();
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  // Waits until the slot's pinned memory has been copied to the device, which may be overwritten
  // then; returns at once if the slot was never used.
  check_cuda(cudaEventSynchronize(slot.has_arrived.get()));
  const bool is_direct = pin_if_it_returns(batch);
  if (!is_direct) std::ranges::copy(bytes, slot.pinned->data());
  check_cuda(cudaStreamWaitEvent(copies_.get(), slot.is_taken.get()));
  check_cuda(cudaMemcpyAsync(slot.arrived->data(), is_direct ? bytes.data() : slot.pinned->data(),
                             bytes.size(), cudaMemcpyHostToDevice, copies_.get()));
  check_cuda(cudaEventRecord(slot.has_arrived.get(), copies_.get()));
  check_cuda(cudaStreamWaitEvent(compute, slot.has_arrived.get()));
  check_cuda(cudaMemcpyAsync(block_->data(), slot.arrived->data(), bytes.size(),
                             cudaMemcpyDeviceToDevice, compute));
  check_cuda(cudaEventRecord(slot.is_taken.get(), compute));
  // The caller's memory is read until the batch has arrived. The upload waits only for the step
  // before the last one, so it ends while the device still computes the last one.
  if (is_direct) check_cuda(cudaEventSynchronize(slot.has_arrived.get()));
}

bool BatchUpload::pin_if_it_returns(const Tensor& batch) {
  const std::span<std::byte> bytes = batch.bytes();
  if (bytes.size() < kLeastDirectBytes || !may_pin_) return false;
  const auto found = std::ranges::find_if(
      pinned_, [&](const auto& pinned) { return pinned->batch.bytes().data() == bytes.data(); });
  if (found != pinned_.end()) {
    std::rotate(found, found + 1, pinned_.end());
    if (bytes.size() <= pinned_.back()->batch.bytes().size()) return true;
    pinned_.pop_back();  // a short batch came first
  } else if (std::erase(seen_, bytes.data()) == 0) {
    if (seen_.size() >= kMostPinned) seen_.erase(seen_.begin());
    seen_.push_back(bytes.data());
    return false;
  }
  // The uploads from pinned batches have ended, since start() waits for them.
  if (pinned_.size() >= kMostPinned) pinned_.erase(pinned_.begin());
  pinned_.push_back(std::make_unique<PinnedBatch>(batch));
  may_pin_ = pinned_.back()->window.is_pinned();
  if (!may_pin_) pinned_.clear();
  return may_pin_;
}

}  // namespace syncopate::cuda
