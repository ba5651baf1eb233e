#include "models/backend/cuda/variables.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "models/backend/cuda/device.h"
#include "models/backend/cuda/errors.h"
#include "models/backend/cuda/kernels/kernels.h"

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

DeviceVariables::DeviceVariables(ParameterArena& arena, StateBlock& state, Precision precision,
                                 int device, bool trains)
    : arena_(arena),
      state_(state),
      precision_(precision),
      values_(device_block(arena.layout().total(), DType::kF32, device)),
      device_state_(device_block(state.layout.total(), DType::kF32, device)),
      versions_(arena.buckets().size(), 0) {
  if (precision != Precision::kF32) {
    weights_ = device_block(arena.layout().total(), DType::kBf16, device);
  }
  if (trains) gradients_ = device_block(arena.layout().total(), DType::kF32, device);
}

void DeviceVariables::refresh(BucketId bucket, cudaStream_t stream) {
  const auto b = static_cast<std::size_t>(bucket);
  const std::uint64_t newest = arena_.version(bucket);
  if (versions_[b] == newest) return;
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
  versions_[b] = newest;
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

void DeviceVariables::upload_state(cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(device_state_.bytes().data(), state_.values.bytes().data(),
                             state_.values.bytes().size(), cudaMemcpyHostToDevice, stream));
}

void DeviceVariables::download_state(cudaStream_t stream) {
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

float* DeviceVariables::state(int index) const {
  return element<float>(device_state_, state_.layout.offset(static_cast<std::size_t>(index)));
}

}  // namespace syncopate::cuda
