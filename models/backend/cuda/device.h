// CUDA's handles, each owned once, and memory of a device as Buffers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "models/base/unique_handle.h"
#include "models/tensor/buffer.h"

namespace syncopate::cuda {

struct StreamTraits {
  using Type = cudaStream_t;
  static Type none() { return nullptr; }
  static void close(Type stream) noexcept { cudaStreamDestroy(stream); }
};
using Stream = UniqueHandle<StreamTraits>;

struct EventTraits {
  using Type = cudaEvent_t;
  static Type none() { return nullptr; }
  static void close(Type event) noexcept { cudaEventDestroy(event); }
};
using StreamEvent = UniqueHandle<EventTraits>;

// The device of the calling thread's next calls. Every function below works on it. All throw
// DeviceError.
void use_device(int index);

Stream make_stream();
// What stands on it comes before what stands on others: sums that others wait for.
Stream make_priority_stream();
// Without a time of its own: for waiting only. A host that waits for it looks again and again,
// which is soonest, or sleeps, which leaves the core to others.
enum class EventWait : std::uint8_t { kLooks, kSleeps };
StreamEvent make_event(EventWait wait = EventWait::kLooks);

// Zeroed memory of device `index`, gone with its last tensor. Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_device_buffer(std::size_t size_bytes, int index);
// Host memory that the device copies from and to while the host goes on. Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_pinned_buffer(std::size_t size_bytes);

// All is there when it returns.
void copy_to_device(void* into, std::span<const std::byte> from);

// Host memory of somebody else's that the device may copy from and to by itself while this lives;
// where that is refused (pinned by another one already, a limit on locked memory) copies take the
// longer way.
class PinnedWindow {
 public:
  explicit PinnedWindow(std::span<std::byte> memory);
  PinnedWindow(const PinnedWindow&) = delete;
  PinnedWindow& operator=(const PinnedWindow&) = delete;
  ~PinnedWindow();

 private:
  void* pinned_ = nullptr;  // null: refused
};

}  // namespace syncopate::cuda
