// Emulates CUDA's streams. Work runs at once, except slow work and the work that follows it. While
// an EmulatedPace lives, work runs as on a device: each stream keeps its order, and the streams
// progress independently. While a stream is captured its work is recorded, and each launch of the
// graph runs it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace syncopate::cuda {

// RecordedWork is the work that the calling thread captures; the pointer is null if it captures
// nothing.
using RecordedWork = std::vector<std::function<void()>>;
RecordedWork*& recorded_work() noexcept;

// Runs or records work on a stream. The null stream runs everything at once.
void do_or_record(cudaStream_t stream, std::function<void()> work);

// Adds work to a stream that may wait for other ranks, as a collective's kernel does. A thread of
// the stream runs it and the work behind it, so that the host continues as with a device. Such work
// cannot be captured.
void add_slow_work(cudaStream_t stream, std::function<void()> work);

// Varies the progress of the calling thread's streams: after each call some proceed and others do
// not, as drawn from the seed. Work is certainly done only once it is waited for, so some seed
// shows a missing wait. Must not be nested.
class EmulatedPace {
 public:
  explicit EmulatedPace(std::uint64_t seed);
  EmulatedPace(const EmulatedPace&) = delete;
  EmulatedPace& operator=(const EmulatedPace&) = delete;
  ~EmulatedPace();  // runs all pending work
};

// Each of these functions implements a function of the CUDA runtime: create_stream(), for example,
// cudaStreamCreateWithFlags() (emulated_runtime.cc).
cudaStream_t create_stream();
void destroy_stream(cudaStream_t stream);  // runs the stream's work first
cudaEvent_t create_event();
void destroy_event(cudaEvent_t event);
void record_event(cudaEvent_t event, cudaStream_t stream);
bool has_passed(cudaEvent_t event);  // is thread-safe
void let_stream_wait(cudaStream_t stream, cudaEvent_t event);
void finish_stream(cudaStream_t stream);
void finish_event(cudaEvent_t event);
// Waits until all work on the device is done, as every call that frees memory does.
void finish_all_streams();

}  // namespace syncopate::cuda
