// Work on a stream that is the same in every step: captured once as a CUDA graph and then started
// as one, so that the host's share of a step is a few microseconds.
// Source: CUDA C++ Programming Guide, "CUDA Graphs", stream capture.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// One thread only.
class CapturedWork {
 public:
  // Of the first runs, so many are started as they come.
  explicit CapturedWork(int runs_as_they_come = 2) : runs_as_they_come_(runs_as_they_come) {}

  // Starts what `work` starts on `stream`: the first times as it comes, since libraries load
  // kernels then, which no capture allows; then as one. `work` starts the same, with the same
  // addresses, every time, and neither waits nor allocates. Throws DeviceError.
  void run(cudaStream_t stream, const std::function<void()>& work);
  // What is to come is other work.
  void forget();
  // For tests: whether it runs as one.
  bool is_captured() const noexcept { return static_cast<bool>(graph_); }

 private:
  struct GraphTraits {
    using Type = cudaGraphExec_t;
    static Type none() { return nullptr; }
    static void close(Type graph) noexcept { cudaGraphExecDestroy(graph); }
  };
  // False where the work cannot be captured; nothing of it has run then.
  bool capture(cudaStream_t stream, const std::function<void()>& work);

  UniqueHandle<GraphTraits> graph_;
  int runs_as_they_come_;
  int runs_ = 0;
  bool is_uncapturable_ = false;
};

}  // namespace syncopate::cuda
