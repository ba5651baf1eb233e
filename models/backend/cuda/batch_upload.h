// Copies batches to the device on a separate stream, so that the next batch is copied while the
// device still computes with the last one.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "models/backend/cuda/device.h"
#include "models/tensor/tensor.h"

namespace syncopate::cuda {

// Copies one tensor of each batch to the device. Used by one thread only.
class BatchUpload {
 public:
  // Allocates memory on the device and pinned memory on the host. most_bytes: the size in bytes of
  // the largest batch.
  BatchUpload(std::size_t most_bytes, int device);
  BatchUpload(const BatchUpload&) = delete;
  BatchUpload& operator=(const BatchUpload&) = delete;
  ~BatchUpload();

  // Copies `batch` to data(), for work that is started on the stream `compute` after this call.
  // `batch` is on the host and has at most most_bytes bytes. The caller may change the memory of
  // `batch` as soon as the call returns. Throws DeviceError.
  void start(const Tensor& batch, cudaStream_t compute);
  // Returns the device address of the batch. The address never changes, because captured steps
  // contain it.
  void* data() const noexcept { return block_->data(); }

 private:
  struct Slot {
    std::shared_ptr<Buffer> pinned;
    std::shared_ptr<Buffer> arrived;  // the batch on the device
    StreamEvent has_arrived;
    StreamEvent is_taken;  // recorded once the compute stream has read `arrived`
  };
  // The memory of a batch on the host, pinned and kept alive.
  struct PinnedBatch {
    explicit PinnedBatch(const Tensor& given) : batch(given), window(given.bytes()) {}
    Tensor batch;
    PinnedWindow window;
  };

  // Pins the memory of a large batch when a batch lies in this memory for the second time, because
  // batches then probably take turns in a ring of memory blocks. Returns whether the memory is
  // pinned.
  bool pin_if_it_returns(const Tensor& batch);

  Stream copies_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<Buffer> block_;
  std::vector<const std::byte*> seen_;  // addresses of the latest batches that are not pinned
  std::vector<std::unique_ptr<PinnedBatch>> pinned_;  // the most recently used comes last
  bool may_pin_ = true;                               // false after CUDA has refused to pin memory
};

}  // namespace syncopate::cuda
