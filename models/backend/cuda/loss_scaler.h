// Keeps the scale of a replica's losses on its device. fp16 needs the scale so that small gradients
// do not underflow (kernels/kernels.h). Steps run without the host, which reads the scale only for
// metrics and checkpoints.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>

#include "models/backend/backend.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/errors.h"
#include "models/backend/cuda/kernels/kernels.h"

namespace syncopate::cuda {

// A LossScaler is used by one thread only. `gradients`: all gradients of one step, device f32.
class LossScaler {
 public:
  LossScaler(const LossScaling& scaling, int device)
      : growth_interval_(scaling.growth_interval),
        memory_(make_device_buffer(sizeof(LossScale), device)) {
    set_state({.scale = scaling.first});
  }

  // Returns the device address of the loss scale. The address never changes.
  LossScale* scale() const noexcept { return reinterpret_cast<LossScale*>(memory_->data()); }

  // Looks for a gradient that is not finite; kernels that read scale() then skip the step.
  void check(const float* gradients, std::int64_t count, cudaStream_t stream) {
    find_non_finite(gradients, count, scale(), stream);
  }
  // Divides the gradients by the loss scale, or zeroes them after an overflow. Follows check().
  void unscale(float* gradients, std::int64_t count, cudaStream_t stream) {
    cuda::unscale(scale(), gradients, count, stream);
  }
  // Ends a step of loss scaling: called once per step, after the last reader of check()'s result.
  void end_step(cudaStream_t stream) { adjust_scale(scale(), growth_interval_, stream); }

  // Reads the state of loss scaling between two steps; waits for the stream.
  LossScaleState state(cudaStream_t stream) const {
    LossScale here;
    check_cuda(cudaMemcpyAsync(&here, scale(), sizeof here, cudaMemcpyDeviceToHost, stream));
    check_cuda(cudaStreamSynchronize(stream));
    return {here.scale, here.good_steps, here.skipped_steps};
  }
  // Sets the state of loss scaling. Called only while no step is in flight.
  void set_state(const LossScaleState& state) {
    const LossScale here{.scale = state.scale,
                         .good_steps = static_cast<std::int32_t>(state.good_steps),
                         .skipped_steps = static_cast<std::int32_t>(state.skipped_steps)};
    copy_to_device(memory_->data(), std::as_bytes(std::span(&here, 1)));
  }

 private:
  int growth_interval_;
  std::shared_ptr<Buffer> memory_;
};

}  // namespace syncopate::cuda
