// cuDNN's engines for one convolution, to choose from (plan_choice.h): timed on a device that is
// here, on memory of their own.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "models/backend/cuda/cudnn/convolution.h"
#include "models/backend/cuda/plan_choice.h"

namespace syncopate::cuda {

// Of which the mean is an engine's time.
constexpr int kTimedRuns = 5;

// One thread only.
class ConvolutionEngines final : public EngineSource {
 public:
  // The handle's stream; on the calling thread's device. most: candidates to make ready.
  ConvolutionEngines(ConvPass pass, const ConvShape& shape, const PlanLimits& limits,
                     cudnnHandle_t handle, cudaStream_t stream, int most);

  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine) override;

  // Of candidates() that are none: what cuDNN said of the last one that could not be made ready, or
  // "".
  const std::string& refusal() const noexcept { return refusal_; }
  // The plan of an engine that is ready. Once.
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
  // What is convolved while time is taken; made once it is needed.
  std::shared_ptr<Buffer> x_, w_, y_, sums_, squares_;
};

}  // namespace syncopate::cuda
