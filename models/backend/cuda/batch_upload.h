// Uploads a batch to the device through pinned memory and on a stream of its own, so that the next
// batch is copied while the device still computes with the last one.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "models/backend/cuda/device.h"

namespace syncopate::cuda {

// A BatchUpload is used by one thread only.
class BatchUpload {
 public:
  // most_bytes is the largest size of a batch in bytes.
  BatchUpload(std::size_t most_bytes, int device);
  BatchUpload(const BatchUpload&) = delete;
  BatchUpload& operator=(const BatchUpload&) = delete;
  ~BatchUpload();

  // Copies the batch `bytes` to data() for the work that is started on `compute` after this call.
  // The caller may change `bytes` as soon as the call returns.
  void start(std::span<const std::byte> bytes, cudaStream_t compute);
  // The batch's address never changes, because a captured step has recorded it.
  void* data() const noexcept { return block_->data(); }

 private:
  struct Slot {
    std::shared_ptr<Buffer> pinned;
    std::shared_ptr<Buffer> arrived;  // holds the batch on the device
    StreamEvent has_arrived;
    StreamEvent is_taken;  // recorded once the compute stream has read `arrived`
  };

  Stream copies_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<Buffer> block_;
};

}  // namespace syncopate::cuda
