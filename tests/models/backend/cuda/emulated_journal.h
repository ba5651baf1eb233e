// Records the calls on the emulated streams and on the fake NCCL in their order, for tests of the
// waits between streams. It can also make the device stuck: recorded events then do not pass.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::cuda {

struct EmulatedCall {
  std::string what;              // the call: "record", "wait", "all-reduce", "abort", ...
  const void* stream = nullptr;  // null if the call has no stream
  const void* event = nullptr;   // set for record and wait
  const void* memory = nullptr;  // set for an all-reduce
  std::size_t count = 0;         // the elements of an all-reduce
  bool operator==(const EmulatedCall&) const = default;
};

// Appends a call to the journal. Thread-safe.
void note_call(EmulatedCall call);
// Returns the calls since the previous take_calls(), or since the start of the program.
std::vector<EmulatedCall> take_calls();

// While this flag is true, cudaEventQuery reports that no event has passed.
std::atomic<bool>& emulated_device_is_stuck();

}  // namespace syncopate::cuda
