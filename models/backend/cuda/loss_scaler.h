// The scale of a replica's losses, on its device: what fp16 needs so that small gradients do not
// vanish (kernels/kernels.h). Steps start on streams and ask nobody; the host reads the scale for
// metrics and checkpoints only.
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

// One thread only. Gradients: of one step, all that there are, f32, on the device.
class LossScaler {
 public:
  LossScaler(const LossScaling& scaling, int device)
      : growth_interval_(scaling.growth_interval),
        memory_(make_device_buffer(sizeof(LossScale), device)) {
    set_state({.scale = scaling.first});
  }

  // By what losses are multiplied; always the same place.
  LossScale* scale() const noexcept { return reinterpret_cast<LossScale*>(memory_->data()); }

  // Looks for one that is not finite: then whoever reads scale() skips the step.
  void check(const float* gradients, std::int64_t count, cudaStream_t stream) {
    find_non_finite(gradients, count, scale(), stream);
  }
  // After check(): the gradients of the loss itself, or zeros.
  void unscale(float* gradients, std::int64_t count, cudaStream_t stream) {
    cuda::unscale(scale(), gradients, count, stream);
  }
  // Once a step, when all have read what check() found.
  void end_step(cudaStream_t stream) { adjust_scale(scale(), growth_interval_, stream); }

  // Between two steps; waits for the stream.
  LossScaleState state(cudaStream_t stream) const {
    LossScale here;
    check_cuda(cudaMemcpyAsync(&here, scale(), sizeof here, cudaMemcpyDeviceToHost, stream));
    check_cuda(cudaStreamSynchronize(stream));
    return {here.scale, here.good_steps, here.skipped_steps};
  }
  // While no step is under way.
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
