// Lists cuDNN's engines for one convolution (plan_choice.h) and times the engines on the present
// device with arrays of their own.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "models/backend/cuda/cudnn/convolution_plan.h"
#include "models/backend/cuda/plan_choice.h"

namespace syncopate::cuda {

// The number of runs that are timed together of a convolution engine and of our kernels; their mean
// is the measured time.
constexpr int kTimedRuns = 20;

// A ConvolutionEngines is used by one thread only.
class ConvolutionEngines final : public EngineSource {
 public:
  // stream is the stream of the cuDNN handle; engines are timed on it, on the calling thread's
  // device. At most `most` engines are compiled and timed.
  ConvolutionEngines(ConvPass pass, const ConvShape& shape, const PlanLimits& limits,
                     cudnnHandle_t handle, cudaStream_t stream, int most);

  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine) override;

  // Returns cuDNN's reason why the last engine that failed could not be compiled, or "" if none
  // failed. For the error message when candidates() is empty.
  const std::string& refusal() const noexcept { return refusal_; }
  // Moves the compiled plan of the named engine to the caller. Called at most once per object.
  ConvPlan take(const std::string& engine);

 private:
  const ConvPlan* ready(const std::string& engine) const;

  const ConvPass pass_;
  const ConvShape shape_;
  const PlanLimits limits_;
  const PlanTarget target_;
  const cudaStream_t stream_;
  const int most_;
  std::vector<ConvPlan> plans_;
  std::string refusal_;
  std::chrono::nanoseconds shortest_ = std::chrono::seconds(10);  // of the times measured so far
  // The arrays for the timed runs of engines, allocated when they are first needed.
  std::shared_ptr<Buffer> x_, w_, y_, sums_, squares_;
};

}  // namespace syncopate::cuda
