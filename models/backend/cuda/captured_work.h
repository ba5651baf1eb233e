// Captures work that is equal in every step as one CUDA graph. Starting the graph costs the host
// only a few microseconds per step.
// Source: CUDA C++ Programming Guide, "CUDA Graphs", stream capture.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// Starts work that is equal in every step: kernel by kernel in the first runs, and later as a
// captured CUDA graph. Used by one thread only.
class CapturedWork {
 public:
  // Makes an object that has not captured any work yet. uncaptured_runs: the number of calls of
  // run() that start the work kernel by kernel before the work is captured.
  explicit CapturedWork(int uncaptured_runs = 2) : uncaptured_runs_(uncaptured_runs) {}

  // Starts the kernels of `work` on `stream`. The first runs are started kernel by kernel, because
  // libraries load their kernels in these runs, which is not allowed during a capture. Later runs
  // start the captured graph. Every call of `work` must start equal operations on equal addresses,
  // and must neither wait nor allocate. Throws DeviceError.
  void run(cudaStream_t stream, const std::function<void()>& work);
  // Drops the captured CUDA graph, because the next run starts different work.
  void forget();

 private:
  struct GraphTraits {
    using Type = cudaGraphExec_t;
    static Type none() { return nullptr; }
    static void close(Type graph) noexcept { cudaGraphExecDestroy(graph); }
  };
  // Captures `work` as a CUDA graph. If CUDA cannot capture the work, returns false without having
  // run any of it.
  bool capture(cudaStream_t stream, const std::function<void()>& work);

  UniqueHandle<GraphTraits> graph_;
  int uncaptured_runs_;
  int runs_ = 0;
  bool is_uncapturable_ = false;
};

}  // namespace syncopate::cuda
