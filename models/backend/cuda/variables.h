// A replica's arena and state on its device: values as trained, a copy of the weights in the type
// of the activations, gradients (in fp16 those of a scaled loss, until they are unscaled or an
// update has read them), and slots where updates are made here. The arena on the host is
// what strategies see: its versions say when values must come down, to_host() brings them up.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/backend/backend.h"
#include "models/backend/cuda/device.h"
#include "models/backend/cuda/loss_scaler.h"
#include "models/graph/graph.h"

namespace syncopate::cuda {

// Shared by the models of one replica. One thread only. Values come down on a stream of their own,
// while what does not need them computes; all else is started on the stream that is given.
class DeviceVariables {
 public:
  // arena and state outlive this.
  DeviceVariables(ParameterArena& arena, StateBlock& state, const BackendOptions& options);

  ~DeviceVariables();
  DeviceVariables(const DeviceVariables&) = delete;
  DeviceVariables& operator=(const DeviceVariables&) = delete;

  // What `compute` was given until now may still read values, or write them. Before the first
  // refresh() of a forward pass.
  void begin_refresh(cudaStream_t compute);
  bool is_current(BucketId bucket) const;
  // Brings a bucket's values up to date if the host's are newer: they are there for what `compute`
  // is given from now on.
  void refresh(BucketId bucket, cudaStream_t compute);
  // Updates are made here from now on, not on the host.
  void keep_updates() noexcept { keeps_updates_ = true; }
  bool keeps_updates() const noexcept { return keeps_updates_; }
  // One update of the whole arena, by the gradients that are here. slots: on the host.
  void update(const Optimizer& optimizer, const UpdateStep& step, std::span<const Tensor> slots,
              cudaStream_t stream);
  // Values, slots and state on the host are as here when it returns.
  void to_host(std::span<const Tensor> slots, cudaStream_t stream);
  // Makes the gradients those of the loss itself, before anybody else reads them, and ends the
  // scale's step: all zero where one is not finite. Nothing to do but in fp16.
  void unscale_gradients(cudaStream_t stream);
  void download_gradients(BucketId bucket, cudaStream_t stream);
  // The running statistics, before and after a forward pass. Where updates are kept here so are
  // they: they come down after a restore, and up with to_host().
  void upload_state(cudaStream_t stream);
  void download_state(cudaStream_t stream);

  const float* value(int parameter) const;
  // In the type of the activations; value() itself in f32.
  const void* weight(int parameter) const;
  float* gradient(int parameter) const;
  float* gradient_arena() const;
  float* state(int index) const;
  // Null: losses are not scaled.
  const LossScale* loss_scale() const noexcept { return scaler_ ? scaler_->scale() : nullptr; }
  // None but in fp16. Waits for the stream; set between steps only.
  std::optional<LossScaleState> loss_scale_state(cudaStream_t stream) const;
  void set_loss_scale_state(const LossScaleState& state);
  void zero_gradients(BucketId bucket, cudaStream_t stream);

 private:
  void make_update_blocks(std::size_t slots);

  ParameterArena& arena_;
  StateBlock& state_;
  Precision precision_;
  Tensor values_;
  Tensor weights_;  // 16-bit; none in f32
  Tensor gradients_;
  std::optional<LossScaler> scaler_;  // in fp16
  std::vector<Tensor> slots_;         // none before the first update
  Tensor decays_;                     // u8, of each kDecayBlock elements
  bool keeps_updates_ = false;
  bool are_slots_stale_ = true;
  bool is_state_stale_ = true;
  bool is_host_stale_ = false;
  Tensor device_state_;
  std::vector<std::uint64_t> versions_;  // by bucket: of what is here
  Stream uploads_;
  StreamEvent last_use_;               // of the values, when begin_refresh() was called
  std::vector<StreamEvent> uploaded_;  // by bucket
  PinnedWindow pinned_values_;         // of the arena
  PinnedWindow pinned_gradients_;
  PinnedWindow pinned_state_;  // else a copy upwards would make the host wait for the device
};

}  // namespace syncopate::cuda
