// Wraps the CUDA runtime: error codes become exceptions, handles have one owner each, and device
// memory is a Buffer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"
#include "models/tensor/buffer.h"

namespace syncopate::cuda {

// Throws unless `code` is success: OutOfMemoryError if memory ran out, otherwise DeviceError. The
// message has the place of the call, the code and CUDA's description of the code.
void check_cuda(cudaError_t code, SourceLocation where = SourceLocation::current());

// Returns the file and line of a call as text, such as "conv_group.cc:42".
std::string describe(SourceLocation where);

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

// Selects the CUDA device of the calling thread's next calls. Every function below works on the
// selected device. All functions throw DeviceError.
void use_device(int index);

Stream make_stream();
// Makes a CUDA stream with priority over other streams. Sums of gradients run on such a stream,
// because other replicas wait for the sums.
Stream make_priority_stream();
// How the host waits for an event of make_event(). kLooks: polls, which has the lowest latency.
// kSleeps: sleeps, which frees the CPU core.
enum class EventWait : std::uint8_t { kLooks, kSleeps };
StreamEvent make_event(EventWait wait = EventWait::kLooks);
// make_timed_event() makes an event that records the device's time when the device reaches it.
// seconds_between() returns the seconds between two such events; it waits for the later event.
StreamEvent make_timed_event();
double seconds_between(const StreamEvent& begun, const StreamEvent& ended);

// Returns zeroed memory of device `index`. Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_device_buffer(std::size_t size_bytes, int index);
// Returns pinned host memory. The device can copy from and to such memory while the host continues.
// Throws OutOfMemoryError.
std::shared_ptr<Buffer> make_pinned_buffer(std::size_t size_bytes);

// Copies host memory to the device and returns when the copy is complete.
void copy_to_device(void* into, std::span<const std::byte> from);

// Pins host memory that another component owns while this object lives, so that the device copies
// from and to the memory directly. If CUDA refuses to pin it, because the memory is pinned already
// or locked memory is limited, copies use CUDA's slower path.
class PinnedWindow {
 public:
  explicit PinnedWindow(std::span<std::byte> memory);
  PinnedWindow(const PinnedWindow&) = delete;
  PinnedWindow& operator=(const PinnedWindow&) = delete;
  ~PinnedWindow();
  bool is_pinned() const noexcept { return pinned_ != nullptr; }

 private:
  void* pinned_ = nullptr;  // null if pinning was refused
};

}  // namespace syncopate::cuda
