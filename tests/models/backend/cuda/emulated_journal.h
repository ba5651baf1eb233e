// What was asked of the emulated streams and of the fake NCCL, in order: for tests of who waits for
// whom. And a device that is stuck: what was recorded does not pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::cuda {

struct EmulatedCall {
  std::string what;              // "record", "wait", "all-reduce", "abort", ...
  const void* stream = nullptr;  // null: none
  const void* event = nullptr;   // of record and wait
  const void* memory = nullptr;  // of an all-reduce
  std::size_t count = 0;         // and its elements
  bool operator==(const EmulatedCall&) const = default;
};

// Thread-safe.
void note_call(EmulatedCall call);
// Calls since the last time; the first time: since the program began.
std::vector<EmulatedCall> take_calls();

// cudaEventQuery says that nothing has passed, while it is true.
std::atomic<bool>& emulated_device_is_stuck();

}  // namespace syncopate::cuda
