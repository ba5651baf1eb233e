// A batch on its way to the device: through pinned memory and a stream of its own, so that the next
// one travels while the last one is still computed with.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "models/backend/cuda/device.h"

namespace syncopate::cuda {

// One thread only.
class BatchUpload {
 public:
  // Of so many bytes at most.
  BatchUpload(std::size_t most_bytes, int device);
  BatchUpload(const BatchUpload&) = delete;
  BatchUpload& operator=(const BatchUpload&) = delete;
  ~BatchUpload();

  // `bytes` stand at data() for what `compute` does from now on; they may change when this returns.
  void start(std::span<const std::byte> bytes, cudaStream_t compute);
  // Always the same place: a captured step reads it.
  void* data() const noexcept { return block_->data(); }

 private:
  struct Slot {
    std::shared_ptr<Buffer> pinned;
    std::shared_ptr<Buffer> arrived;  // on the device
    StreamEvent has_arrived;
    StreamEvent is_taken;  // by the computing stream
  };

  Stream copies_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<Buffer> block_;
};

}  // namespace syncopate::cuda
