#include "models/backend/cuda/captured_work.h"

#include <fmt/format.h>

#include <string>

#include "models/backend/cuda/device.h"
#include "models/base/log.h"

namespace syncopate::cuda {

void CapturedWork::run(cudaStream_t stream, const std::function<void()>& work) {
  if (graph_) return check_cuda(cudaGraphLaunch(graph_.get(), stream));
  if (runs_ < uncaptured_runs_ || is_uncapturable_) {
    ++runs_;
    return work();
  }
  if (capture(stream, work)) return check_cuda(cudaGraphLaunch(graph_.get(), stream));
  is_uncapturable_ = true;
  work();
}

void CapturedWork::forget() {
  graph_.reset();
  runs_ = 0;
}

bool CapturedWork::capture(cudaStream_t stream, const std::function<void()>& work) {
  // The capture of a CUDA graph is restricted to this thread, because another replica's thread may
  // allocate memory during it.
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  std::string why;
  try {
    work();
  } catch (const std::exception& error) {
    why = error.what();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGraphExec_t executable = nullptr;
  if (why.empty() && ended == cudaSuccess) {
    check_cuda(cudaGraphInstantiate(&executable, graph, 0));
    graph_.reset(executable);
  } else {
    cudaGetLastError();  // clears the error, else the next CUDA call reports it
    log(LogLevel::kWarning,
        fmt::format(
            "work is started kernel by kernel: it could not be captured as a CUDA graph ({})",
            why.empty() ? cudaGetErrorString(ended) : why));
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return static_cast<bool>(graph_);
}

}  // namespace syncopate::cuda
