#include "models/backend/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/base/log.h"

namespace syncopate::cuda {
namespace {

// Called after a cudaMemset or cudaMemcpy, which may return before the default stream has done the
// work: the non-blocking streams of this file do not wait for the default stream.
void wait_for_the_default_stream() { check_cuda(cudaStreamSynchronize(nullptr)); }

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::size_t size_bytes, int index) : size_bytes_(size_bytes), index_(index) {
    // At least one byte of device memory is allocated, so that an empty block has an address, too.
    check_cuda(cudaMalloc(&data_, std::max<std::size_t>(size_bytes, 1)));
    check_cuda(cudaMemset(data_, 0, size_bytes));
    wait_for_the_default_stream();
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() override { cudaFree(data_); }

  std::byte* data() noexcept override { return static_cast<std::byte*>(data_); }
  std::size_t size_bytes() const noexcept override { return size_bytes_; }
  Device device() const noexcept override { return {DeviceKind::kCuda, index_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_;
  int index_;
};

class PinnedBuffer final : public Buffer {
 public:
  explicit PinnedBuffer(std::size_t size_bytes) : size_bytes_(size_bytes) {
    check_cuda(cudaMallocHost(&data_, std::max<std::size_t>(size_bytes, 1)));
    std::fill_n(static_cast<std::byte*>(data_), size_bytes, std::byte{0});
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() override { cudaFreeHost(data_); }

  std::byte* data() noexcept override { return static_cast<std::byte*>(data_); }
  std::size_t size_bytes() const noexcept override { return size_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_;
};

}  // namespace

std::string describe(SourceLocation where) {
  return fmt::format("{}:{}", std::filesystem::path(where.file).filename().string(), where.line);
}

void check_cuda(cudaError_t code, SourceLocation where) {
  if (code == cudaSuccess) return;
  const std::string error =
      fmt::format("CUDA error {} ({}: {}) at {}", static_cast<int>(code), cudaGetErrorName(code),
                  cudaGetErrorString(code), describe(where));
  if (code == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError(error + "; choose a smaller batch or a smaller network");
  }
  throw DeviceError(error);
}

void use_device(int index) { check_cuda(cudaSetDevice(index)); }

Stream make_stream() {
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return Stream(made);
}

Stream make_priority_stream() {
  int lowest = 0;
  int highest = 0;  // in CUDA the highest stream priority is the smallest number
  check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, highest));
  return Stream(made);
}

StreamEvent make_event(EventWait wait) {
  cudaEvent_t made = nullptr;
  const unsigned flags = wait == EventWait::kSleeps ? cudaEventBlockingSync : 0;
  check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming | flags));
  return StreamEvent(made);
}

StreamEvent make_timed_event() {
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreateWithFlags(&made, cudaEventDefault));
  return StreamEvent(made);
}

double seconds_between(const StreamEvent& begun, const StreamEvent& ended) {
  check_cuda(cudaEventSynchronize(ended.get()));
  float milliseconds = 0.0F;
  check_cuda(cudaEventElapsedTime(&milliseconds, begun.get(), ended.get()));
  return 1e-3 * static_cast<double>(milliseconds);
}

std::shared_ptr<Buffer> make_device_buffer(std::size_t size_bytes, int index) {
  return std::make_shared<DeviceBuffer>(size_bytes, index);
}

std::shared_ptr<Buffer> make_pinned_buffer(std::size_t size_bytes) {
  return std::make_shared<PinnedBuffer>(size_bytes);
}

void copy_to_device(void* into, std::span<const std::byte> from) {
  check_cuda(cudaMemcpy(into, from.data(), from.size(), cudaMemcpyHostToDevice));
  wait_for_the_default_stream();
}

PinnedWindow::PinnedWindow(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const cudaError_t code = cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable);
  if (code == cudaSuccess) {
    pinned_ = memory.data();
    return;
  }
  cudaGetLastError();  // clears the error, else the next call reports it
  if (code == cudaErrorHostMemoryAlreadyRegistered) return;  // replicas share the memory
  log(LogLevel::kWarning,
      fmt::format("{} MiB of memory cannot be pinned ({}): copies to and from the GPU wait for "
                  "each other; look at the limit of locked memory (ulimit -l)",
                  memory.size() >> 20, cudaGetErrorName(code)));
}

PinnedWindow::~PinnedWindow() {
  if (pinned_ != nullptr) cudaHostUnregister(pinned_);
}

}  // namespace syncopate::cuda
