// Work on emulated streams. Done at once, but for slow work and what comes behind it; or, while an
// EmulatedPace lives, as a device does it: each stream in its order, and otherwise whenever it
// likes. While a stream is captured its work is kept, to be done again whenever the graph is
// launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace syncopate::cuda {

// What the calling thread captures; null: nothing.
using RecordedWork = std::vector<std::function<void()>>;
RecordedWork*& recorded_work() noexcept;

// The null stream does everything at once.
void do_or_record(cudaStream_t stream, std::function<void()> work);

// Work that may wait for others, as a collective's kernel does: a thread of the stream's own does
// it, and what comes behind it, so that the host goes ahead as it does of a device. Never captured.
void add_slow_work(cudaStream_t stream, std::function<void()> work);

// Of the calling thread's streams: after each call some go on, others do not, as drawn from the
// seed. Work is done for certain only when somebody waits for it, so where a wait was forgotten
// some seed shows it. Not nested.
class EmulatedPace {
 public:
  explicit EmulatedPace(std::uint64_t seed);
  EmulatedPace(const EmulatedPace&) = delete;
  EmulatedPace& operator=(const EmulatedPace&) = delete;
  ~EmulatedPace();  // all work is done then
};

// The runtime's functions of these names (emulated_runtime.cc).
cudaStream_t create_stream();
void destroy_stream(cudaStream_t stream);  // its work is done first
cudaEvent_t create_event();
void destroy_event(cudaEvent_t event);
void record_event(cudaEvent_t event, cudaStream_t stream);
bool has_passed(cudaEvent_t event);  // thread-safe
void let_stream_wait(cudaStream_t stream, cudaEvent_t event);
void finish_stream(cudaStream_t stream);
void finish_event(cudaEvent_t event);
// What frees memory waits for the device.
void finish_all_streams();

}  // namespace syncopate::cuda
