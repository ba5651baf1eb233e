// Uploads batches whose memory is overwritten as soon as an upload has started.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/backend/cuda/batch_upload.h"

namespace syncopate::cuda {

// Uploads batches of at most `elements` floats from a ring of two tensors: batch i has lengths[i]
// elements, each i + 1. Returns the first and the last element of each batch as the device saw it.
inline std::vector<float> upload_batches(std::int64_t elements,
                                         const std::vector<std::int64_t>& lengths) {
  const Stream compute = make_stream();
  BatchUpload upload(static_cast<std::size_t>(elements) * sizeof(float), 0);
  const std::array ring{make_host_tensor({elements}, DType::kF32),
                        make_host_tensor({elements}, DType::kF32)};
  const auto seen = make_pinned_buffer(2 * lengths.size() * sizeof(float));
  auto* const values = reinterpret_cast<float*>(seen->data());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Tensor batch = ring[i % ring.size()].rows(0, lengths[i]);
    for (float& element : batch.f32()) element = static_cast<float>(i + 1);
    upload.start(batch, compute.get());
    for (float& element : batch.f32()) element = -1.0F;
    const auto* const data = static_cast<const float*>(upload.data());
    for (const std::int64_t k : {std::int64_t{0}, lengths[i] - 1}) {
      check_cuda(cudaMemcpyAsync(values + 2 * i + (k == 0 ? 0 : 1), data + k, sizeof(float),
                                 cudaMemcpyDeviceToHost, compute.get()));
    }
  }
  check_cuda(cudaStreamSynchronize(compute.get()));
  return {values, values + 2 * lengths.size()};
}

// Enough batches for the memory of the ring to be pinned, used again, and used by a shorter batch.
inline const std::vector<std::int64_t> kUploadedLengths = {300000, 300000, 300000, 300000,
                                                           300000, 299999, 300000};
inline const std::vector<float> kUploadedValues = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};

}  // namespace syncopate::cuda
