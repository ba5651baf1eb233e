// A replica's arena and state on its device: values as trained, a copy of the weights in the type
// of the activations, gradients. The arena itself stays on the host, where strategies see it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "models/backend/backend.h"
#include "models/graph/graph.h"

namespace syncopate::cuda {

// One thread only; copies are started on the stream that is given.
class DeviceVariables {
 public:
  // arena and state outlive this.
  DeviceVariables(ParameterArena& arena, StateBlock& state, Precision precision, int device,
                  bool trains);

  // Brings a bucket's values up to date if the host's are newer.
  void refresh(BucketId bucket, cudaStream_t stream);
  void download_gradients(BucketId bucket, cudaStream_t stream);
  void upload_state(cudaStream_t stream);
  void download_state(cudaStream_t stream);

  const float* value(int parameter) const;
  // In the type of the activations; value() itself in f32.
  const void* weight(int parameter) const;
  float* gradient(int parameter) const;
  float* state(int index) const;
  void zero_gradients(BucketId bucket, cudaStream_t stream);

 private:
  ParameterArena& arena_;
  StateBlock& state_;
  Precision precision_;
  Tensor values_;
  Tensor weights_;    // 16-bit; none in f32
  Tensor gradients_;  // where trained
  Tensor device_state_;
  std::vector<std::uint64_t> versions_;  // by bucket: of what is here
};

}  // namespace syncopate::cuda
