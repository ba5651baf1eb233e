// Captures work that is equal in every step as one CUDA graph and starts that graph, which costs
// the host a few microseconds per step.
// Source: CUDA C++ Programming Guide, "CUDA Graphs", stream capture.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// A CapturedWork is used by one thread only.
class CapturedWork {
 public:
  // uncaptured_runs: the number of runs that start kernel by kernel before one is captured as a
  // CUDA graph.
  explicit CapturedWork(int uncaptured_runs = 2) : uncaptured_runs_(uncaptured_runs) {}

  // Starts the kernels of `work` on `stream`. The first runs start kernel by kernel, since
  // libraries load kernels then, which a capture forbids; later runs start the captured graph.
  // `work` has to start equal operations on equal addresses at every call, and must neither wait
  // nor allocate. Throws DeviceError.
  void run(cudaStream_t stream, const std::function<void()>& work);
  // Drops the captured CUDA graph, because the next run starts different work.
  void forget();

 private:
  struct GraphTraits {
    using Type = cudaGraphExec_t;
    static Type none() { return nullptr; }
    static void close(Type graph) noexcept { cudaGraphExecDestroy(graph); }
  };
  // Captures `work` as a CUDA graph. Returns false, and has run none of the work, if CUDA cannot
  // capture it.
  bool capture(cudaStream_t stream, const std::function<void()>& work);

  UniqueHandle<GraphTraits> graph_;
  int uncaptured_runs_;
  int runs_ = 0;
  bool is_uncapturable_ = false;
};

}  // namespace syncopate::cuda
