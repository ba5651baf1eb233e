// Uploads a batch to the device on a stream of its own, so that the next batch is copied while the
// device still computes with the last one.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "models/backend/cuda/device.h"
#include "models/tensor/tensor.h"

namespace syncopate::cuda {

// A BatchUpload is used by one thread only.
class BatchUpload {
 public:
  // most_bytes is the largest size of a batch in bytes.
  BatchUpload(std::size_t most_bytes, int device);
  BatchUpload(const BatchUpload&) = delete;
  BatchUpload& operator=(const BatchUpload&) = delete;
  ~BatchUpload();

  // Copies `batch`, on the host and of at most most_bytes, to data() for the work that is started
  // on `compute` after this call. The caller may change the batch's memory as soon as the call
  // returns. Throws DeviceError.
  void start(const Tensor& batch, cudaStream_t compute);
  // The batch's address never changes, because a captured step has recorded it.
  void* data() const noexcept { return block_->data(); }

 private:
  struct Slot {
    std::shared_ptr<Buffer> pinned;
    std::shared_ptr<Buffer> arrived;  // holds the batch on the device
    StreamEvent has_arrived;
    StreamEvent is_taken;  // recorded once the compute stream has read `arrived`
  };
  // A batch's own memory, which is pinned and kept from being freed.
  struct PinnedBatch {
    explicit PinnedBatch(const Tensor& given) : batch(given), window(given.bytes()) {}
    Tensor batch;
    PinnedWindow window;
  };

  // Pins the memory of a large batch when it is seen for the second time, and returns whether it is
  // pinned. A ring of batches uses the same memory again and again.
  bool pin_if_it_returns(const Tensor& batch);

  Stream copies_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::shared_ptr<Buffer> block_;
  std::vector<const std::byte*> seen_;  // the addresses of the latest batches that are not pinned
  std::vector<std::unique_ptr<PinnedBatch>> pinned_;  // the last one was used last
  bool may_pin_ = true;                               // until CUDA refuses it
};

}  // namespace syncopate::cuda
