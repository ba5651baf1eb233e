// DeviceVariables holds a replica's arena and state on its device: trained values, a copy of the
// weights in the type of the activations, gradients, and, if updates are made on the device, slots.
// In fp16, the gradients are multiplied by the loss scale until they are unscaled or an update has
// read them. Strategies use the arena on the host. The arena's versions show when values must be
// copied to the device, and to_host() copies them back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/graph/graph.h"

namespace syncopate::cuda {

// Keeps the loss scale of a replica on its device. fp16 needs loss scaling so that small gradients
// do not underflow. Steps run without the host, which reads the scale only for metrics and
// checkpoints. Used by one thread only. `gradients` are all gradients of one step, f32 on the
// device.
class LossScaler {
 public:
  LossScaler(const LossScaling& scaling, int device)
      : growth_interval_(scaling.growth_interval),
        memory_(make_device_buffer(sizeof(LossScale), device)) {
    set_state({.scale = scaling.first});
  }

  // Returns the device address of the loss scale. The address never changes.
  LossScale* scale() const noexcept { return reinterpret_cast<LossScale*>(memory_->data()); }

  // Looks for a gradient that is not finite. If there is one, kernels that read scale() skip the
  // step.
  void check(const float* gradients, std::int64_t count, cudaStream_t stream) {
    find_non_finite(gradients, count, scale(), stream);
  }
  // Divides the gradients by the loss scale, or sets them to zero if check() has found an infinity
  // or NaN.
  void unscale(float* gradients, std::int64_t count, cudaStream_t stream) {
    cuda::unscale(scale(), gradients, count, stream);
  }
  // Adjusts the loss scale at the end of a step. Called once per step, after the last kernel that
  // reads whether check() has found an infinity or NaN.
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

// The variables of one replica, shared by its models. Used by one thread only. Values are copied to
// the device on a separate stream, while the device does work that does not need these values. All
// other work runs on the stream that is passed to each function.
class DeviceVariables {
 public:
  // Allocates the blocks on the device. `arena` and `state` must outlive the DeviceVariables.
  DeviceVariables(ParameterArena& arena, StateBlock& state, const BackendOptions& options);

  ~DeviceVariables();
  DeviceVariables(const DeviceVariables&) = delete;
  DeviceVariables& operator=(const DeviceVariables&) = delete;

  // Makes later copies of values wait for all work that is already on `compute`, because this work
  // may still read or write the values. Called before the first refresh() of a forward pass.
  void begin_refresh(cudaStream_t compute);
  bool is_current(BucketId bucket) const;
  // Copies a bucket's values to the device if the values on the host are newer. Later work on
  // `compute` uses the new values.
  void refresh(BucketId bucket, cudaStream_t compute);
  // Makes the device, not the host, apply the optimizer's updates from now on.
  void keep_updates() noexcept { keeps_updates_ = true; }
  bool keeps_updates() const noexcept { return keeps_updates_; }
  // Scales the device's gradients so that their L2 norm is at most max_norm.
  void clip_gradients(double max_norm, cudaStream_t stream);
  // Applies one optimizer update to the arena on the device, with the gradients on the device.
  // slots: the optimizer's slots on the host.
  void update(const Optimizer& optimizer, const UpdateStep& step, std::span<const Tensor> slots,
              cudaStream_t stream);
  // Copies values, slots and state to the host and returns when the copies are complete.
  void to_host(std::span<const Tensor> slots, cudaStream_t stream);
  // Divides the gradients by the loss scale, or sets them to zero if one is not finite, and ends
  // the step of loss scaling. Called before the gradients are read. Does nothing in other
  // precisions than fp16.
  void unscale_gradients(cudaStream_t stream);
  void download_gradients(BucketId bucket, cudaStream_t stream);
  // Copy batch norm's running statistics. upload_state() copies to the device, before a forward
  // pass; download_state() copies to the host, after the pass. If updates are made on the device,
  // upload_state() copies only after a restore, and download_state() leaves the copy to to_host().
  void upload_state(cudaStream_t stream);
  void download_state(cudaStream_t stream);

  const float* value(int parameter) const;
  // Returns the address of a parameter in the type of the activations; value() returns the address
  // of its f32 values.
  const void* weight(int parameter) const;
  float* gradient(int parameter) const;
  float* gradient_arena() const;
  float* state(int index) const;
  // Returns the loss scale on the device, or null if losses are not scaled.
  const LossScale* loss_scale() const noexcept { return scaler_ ? scaler_->scale() : nullptr; }
  // Return and set the state of loss scaling, which exists only in fp16. loss_scale_state() waits
  // for the stream. set_loss_scale_state() may be called only between steps.
  std::optional<LossScaleState> loss_scale_state(cudaStream_t stream) const;
  void set_loss_scale_state(const LossScaleState& state);
  void zero_gradients(BucketId bucket, cudaStream_t stream);
  // keep_gradients() copies the gradients, which are the sums over the micro-batches so far, to a
  // second block. add_kept_gradients() adds the bucket's part of this block to the gradients.
  void keep_gradients(cudaStream_t stream);
  void add_kept_gradients(BucketId bucket, cudaStream_t stream);
  void drop_kept_gradients() noexcept { has_kept_gradients_ = false; }

 private:
  void make_update_blocks(std::size_t slots);

  ParameterArena& arena_;
  StateBlock& state_;
  Precision precision_;
  Tensor values_;
  Tensor weights_;  // 16-bit copies of the values; empty in f32
  Tensor gradients_;
  std::optional<LossScaler> scaler_;  // exists in fp16 only
  std::vector<Tensor> slots_;         // slots of the optimizer; empty before the first update
  Tensor kept_gradients_;             // sums over micro-batches; empty before the first one
  bool has_kept_gradients_ = false;
  std::shared_ptr<Buffer> squares_;  // scratch of clip_gradients(); null before the first call
  Tensor decays_;                    // UpdateArrays::decays: one u8 per kDecayBlock elements
  bool keeps_updates_ = false;
  bool are_slots_stale_ = true;
  bool is_state_stale_ = true;
  bool is_host_stale_ = false;
  Tensor device_state_;
  std::vector<std::uint64_t> versions_;  // versions of the values on the device; index: the bucket
  Stream uploads_;
  StreamEvent last_use_;  // recorded by begin_refresh() after the last use of the values
  // uploaded_[b] is recorded when the values of bucket b are on the device.
  std::vector<StreamEvent> uploaded_;
  PinnedWindow pinned_values_;  // pins the arena's values
  PinnedWindow pinned_gradients_;
  PinnedWindow pinned_state_;  // pinned so that a copy of the state does not block the host
};

}  // namespace syncopate::cuda
