#include "models/backend/cuda/variables.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <nvtx3/nvtx3.hpp>
#include <utility>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/kernels/cuda_kernels.h"
#include "models/backend/cuda/precision.h"

namespace syncopate::cuda {
namespace {

Tensor device_block(std::int64_t count, DType type, int device) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_bytes(type);
  return Tensor(make_device_buffer(bytes, device), 0, {count}, type);
}

template <typename T>
T* element(const Tensor& block, std::int64_t index) {
  return reinterpret_cast<T*>(block.bytes().data()) + index;
}

std::size_t bytes_of(const Bucket& range) {
  return static_cast<std::size_t>(range.end - range.begin) * sizeof(float);
}

}  // namespace

DeviceVariables::DeviceVariables(ParameterArena& arena, StateBlock& state,
                                 const BackendOptions& options)
    : arena_(arena),
      state_(state),
      precision_(options.precision),
      values_(device_block(arena.layout().total(), DType::kF32, options.device.index)),
      gradients_(device_block(arena.layout().total(), DType::kF32, options.device.index)),
      device_state_(device_block(state.layout.total(), DType::kF32, options.device.index)),
      versions_(arena.buckets().size(), 0),
      uploads_(make_stream()),
      last_use_(make_event()),
      pinned_values_(arena.values().bytes()),
      pinned_gradients_(arena.gradients().bytes()),
      pinned_state_(state.values.bytes()) {
  if (precision_ != Precision::kF32) {
    weights_ = device_block(arena.layout().total(), DType::kBf16, options.device.index);
  }
  if (precision_ == Precision::kF16) {
    scaler_.emplace(options.loss_scaling, options.device.index);
  }
  for (std::size_t b = 0; b < versions_.size(); ++b) uploaded_.push_back(make_event());
}

// Waits for copies of values in flight, because they write to memory that is about to be freed.
DeviceVariables::~DeviceVariables() { cudaStreamSynchronize(uploads_.get()); }

void DeviceVariables::begin_refresh(cudaStream_t compute) {
  check_cuda(cudaEventRecord(last_use_.get(), compute));
}

bool DeviceVariables::is_current(BucketId bucket) const {
  return versions_[static_cast<std::size_t>(bucket)] == arena_.version(bucket);
}

void DeviceVariables::refresh(BucketId bucket, cudaStream_t compute) {
  if (is_current(bucket)) return;
  const auto b = static_cast<std::size_t>(bucket);
  const cudaStream_t stream = uploads_.get();
  check_cuda(cudaStreamWaitEvent(stream, last_use_.get()));
  // Host values are newer than the device's after a restore from a checkpoint, which also writes
  // the host's optimizer slots and batch-norm statistics; the device's are outdated, too.
  are_slots_stale_ = true;
  is_state_stale_ = true;
  const Bucket& range = arena_.buckets()[b];
  float* const here = element<float>(values_, range.begin);
  check_cuda(cudaMemcpyAsync(here, arena_.values().f32().data() + range.begin, bytes_of(range),
                             cudaMemcpyHostToDevice, stream));
  const std::int64_t count = range.end - range.begin;
  if (precision_ == Precision::kBf16) {
    convert(here, element<__nv_bfloat16>(weights_, range.begin), count, stream);
  } else if (precision_ == Precision::kF16) {
    convert(here, element<__half>(weights_, range.begin), count, stream);
  }
  check_cuda(cudaEventRecord(uploaded_[b].get(), stream));
  check_cuda(cudaStreamWaitEvent(compute, uploaded_[b].get()));
  versions_[b] = arena_.version(bucket);
}

void DeviceVariables::clip_gradients(double max_norm, cudaStream_t stream) {
  if (squares_ == nullptr) {
    squares_ = make_device_buffer(kSquaresBlocks * sizeof(double), values_.device().index);
  }
  cuda::clip_gradients(element<float>(gradients_, 0), arena_.layout().total(), max_norm,
                       loss_scale(), reinterpret_cast<double*>(squares_->data()), stream);
}

void DeviceVariables::update(const Optimizer& optimizer, const UpdateStep& step,
                             std::span<const Tensor> slots, cudaStream_t stream) {
  const nvtx3::scoped_range range("update");
  const std::int64_t total = arena_.layout().total();
  if (slots_.empty() && decays_.num_elements() <= 1) make_update_blocks(slots.size());
  if (are_slots_stale_) {
    for (std::size_t s = 0; s < slots.size(); ++s) {
      check_cuda(cudaMemcpyAsync(slots_[s].bytes().data(), slots[s].bytes().data(),
                                 slots[s].bytes().size(), cudaMemcpyHostToDevice, stream));
    }
    are_slots_stale_ = false;
  }
  UpdateArrays arrays{.values = element<float>(values_, 0),
                      .gradients = element<float>(gradients_, 0),
                      .decays = element<std::uint8_t>(decays_, 0),
                      .scale = loss_scale()};
  if (scaler_) scaler_->check(arrays.gradients, total, stream);
  const UpdateConstants with_decay = optimizer.constants(step, true);
  std::size_t own_slots = slots_.size();  // of the update rule: the average comes last
  if (with_decay.average_rate > 0.0F) arrays.average = element<float>(slots_[--own_slots], 0);
  for (std::size_t s = 0; s < own_slots; ++s) arrays.slots[s] = element<float>(slots_[s], 0);
  const UpdateConstants without_decay = optimizer.constants(step, false);
  with_type(precision_, [&]<typename T>() {
    T* const weights = precision_ == Precision::kF32 ? nullptr : element<T>(weights_, 0);
    cuda::update(with_decay, without_decay, arrays, weights, total, stream);
  });
  if (scaler_) scaler_->end_step(stream);
  // The versions of the buckets are raised by the caller that requested the update.
  for (std::size_t b = 0; b < versions_.size(); ++b) {
    versions_[b] = arena_.version(static_cast<BucketId>(b)) + 1;
  }
  is_host_stale_ = true;
}

void DeviceVariables::make_update_blocks(std::size_t slots) {
  const ArenaLayout& layout = arena_.layout();
  const int device = values_.device().index;
  for (std::size_t s = 0; s < slots; ++s) {
    slots_.push_back(device_block(layout.total(), DType::kF32, device));
  }
  std::vector<std::uint8_t> decays(
      static_cast<std::size_t>((layout.total() + kDecayBlock - 1) / kDecayBlock), 0);
  for (std::size_t p = 0; p < layout.entries().size(); ++p) {
    const auto first = static_cast<std::size_t>(layout.offset(p) / kDecayBlock);
    const auto last =
        static_cast<std::size_t>((layout.offset(p) + layout.size(p) - 1) / kDecayBlock);
    std::fill(decays.begin() + static_cast<std::ptrdiff_t>(first),
              decays.begin() + static_cast<std::ptrdiff_t>(last) + 1,
              layout.entries()[p].decays ? 1 : 0);
  }
  decays_ = device_block(static_cast<std::int64_t>(decays.size()), DType::kU8, device);
  copy_to_device(decays_.bytes().data(), std::as_bytes(std::span(decays)));
}

void DeviceVariables::to_host(std::span<const Tensor> slots, cudaStream_t stream) {
  if (!is_host_stale_) return;
  const auto copy = [&](const Tensor& into, const Tensor& from) {
    check_cuda(cudaMemcpyAsync(into.bytes().data(), from.bytes().data(), from.bytes().size(),
                               cudaMemcpyDeviceToHost, stream));
  };
  copy(arena_.values(), values_);
  for (std::size_t s = 0; s < slots_.size(); ++s) copy(slots[s], slots_[s]);
  copy(state_.values, device_state_);
  check_cuda(cudaStreamSynchronize(stream));
  is_host_stale_ = false;
}

void DeviceVariables::unscale_gradients(cudaStream_t stream) {
  if (!scaler_) return;
  float* const gradients = element<float>(gradients_, 0);
  const std::int64_t total = arena_.layout().total();
  scaler_->check(gradients, total, stream);
  scaler_->unscale(gradients, total, stream);
  scaler_->end_step(stream);
}

std::optional<LossScaleState> DeviceVariables::loss_scale_state(cudaStream_t stream) const {
  if (!scaler_) return std::nullopt;
  return scaler_->state(stream);
}

void DeviceVariables::set_loss_scale_state(const LossScaleState& state) {
  if (scaler_) scaler_->set_state(state);
}

void DeviceVariables::download_gradients(BucketId bucket, cudaStream_t stream) {
  const Bucket& range = arena_.buckets()[static_cast<std::size_t>(bucket)];
  check_cuda(cudaMemcpyAsync(arena_.gradients().f32().data() + range.begin,
                             element<float>(gradients_, range.begin), bytes_of(range),
                             cudaMemcpyDeviceToHost, stream));
}

void DeviceVariables::zero_gradients(BucketId bucket, cudaStream_t stream) {
  const Bucket& range = arena_.buckets()[static_cast<std::size_t>(bucket)];
  check_cuda(cudaMemsetAsync(element<float>(gradients_, range.begin), 0, bytes_of(range), stream));
}

void DeviceVariables::keep_gradients(cudaStream_t stream) {
  if (kept_gradients_.num_elements() <= 1) {
    kept_gradients_ = device_block(arena_.layout().total(), DType::kF32, values_.device().index);
  }
  check_cuda(cudaMemcpyAsync(kept_gradients_.bytes().data(), gradients_.bytes().data(),
                             gradients_.bytes().size(), cudaMemcpyDeviceToDevice, stream));
  has_kept_gradients_ = true;
}

void DeviceVariables::add_kept_gradients(BucketId bucket, cudaStream_t stream) {
  if (!has_kept_gradients_) return;
  const Bucket& range = arena_.buckets()[static_cast<std::size_t>(bucket)];
  float* const gradients = element<float>(gradients_, range.begin);
  add(gradients, element<float>(kept_gradients_, range.begin), gradients, range.end - range.begin,
      stream);
}

void DeviceVariables::upload_state(cudaStream_t stream) {
  if (keeps_updates_ && !std::exchange(is_state_stale_, false)) return;
  check_cuda(cudaMemcpyAsync(device_state_.bytes().data(), state_.values.bytes().data(),
                             state_.values.bytes().size(), cudaMemcpyHostToDevice, stream));
}

void DeviceVariables::download_state(cudaStream_t stream) {
  if (keeps_updates_) {
    is_host_stale_ = true;
    return;
  }
  check_cuda(cudaMemcpyAsync(state_.values.bytes().data(), device_state_.bytes().data(),
                             state_.values.bytes().size(), cudaMemcpyDeviceToHost, stream));
}

const float* DeviceVariables::value(int parameter) const {
  return element<float>(values_, arena_.layout().offset(static_cast<std::size_t>(parameter)));
}

const void* DeviceVariables::weight(int parameter) const {
  if (precision_ == Precision::kF32) return value(parameter);
  return element<std::uint16_t>(weights_,
                                arena_.layout().offset(static_cast<std::size_t>(parameter)));
}

float* DeviceVariables::gradient(int parameter) const {
  return element<float>(gradients_, arena_.layout().offset(static_cast<std::size_t>(parameter)));
}

float* DeviceVariables::gradient_arena() const { return element<float>(gradients_, 0); }

float* DeviceVariables::state(int index) const {
  return element<float>(device_state_, state_.layout.offset(static_cast<std::size_t>(index)));
}

}  // namespace syncopate::cuda
