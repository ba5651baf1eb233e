#include "models/backend/cuda/batch_upload.h"

#include <algorithm>

#include "models/backend/cuda/device.h"

namespace syncopate::cuda {

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

void BatchUpload::start(std::span<const std::byte> bytes, cudaStream_t compute) {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  // Waits until the slot's pinned memory has been copied to the device, which may be overwritten
  // then; returns at once if the slot was never used.
  check_cuda(cudaEventSynchronize(slot.has_arrived.get()));
  std::ranges::copy(bytes, slot.pinned->data());
  check_cuda(cudaStreamWaitEvent(copies_.get(), slot.is_taken.get()));
  check_cuda(cudaMemcpyAsync(slot.arrived->data(), slot.pinned->data(), bytes.size(),
                             cudaMemcpyHostToDevice, copies_.get()));
  check_cuda(cudaEventRecord(slot.has_arrived.get(), copies_.get()));
  check_cuda(cudaStreamWaitEvent(compute, slot.has_arrived.get()));
  check_cuda(cudaMemcpyAsync(block_->data(), slot.arrived->data(), bytes.size(),
                             cudaMemcpyDeviceToDevice, compute));
  check_cuda(cudaEventRecord(slot.is_taken.get(), compute));
}

}  // namespace syncopate::cuda
