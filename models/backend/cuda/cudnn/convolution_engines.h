// Chooses cuDNN's engine for one convolution, by the policy of plan_choice.h. Lists the engines,
// and times them on the present device with arrays that are allocated for this purpose.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/cudnn/convolution_plan.h"
#include "models/backend/cuda/plan_choice.h"

namespace syncopate::cuda {

// The device on which convolutions run and are timed. It must be the calling thread's device.
struct EngineTarget {
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;  // the stream of the handle
  // The version of cuDNN and the device, such as "cuDNN 9.19.0, NVIDIA H200"; part of the key under
  // which the fastest engine is stored.
  std::string name;
};

// Lists, times and chooses the engines of one convolution. Used by one thread only.
class ConvolutionEngines final : private EngineSource {
 public:
  // Prepares for choose(), which lists the engines. cache: stores the fastest engines. If null, no
  // engine is measured and choose() takes cuDNN's first engine.
  ConvolutionEngines(ConvPass pass, const ConvShape& shape, const PlanLimits& limits,
                     const EngineTarget& target, PlanCache* cache);

  // Returns the plan of the chosen engine, or nullopt if there is no engine. For kForwardWithSums,
  // also returns nullopt if a plain convolution followed by this program's kernel for the sums is
  // faster, because cuDNN has fewer engines that compute sums. Called once. Throws DeviceError.
  std::optional<ConvPlan> choose();
  // Returns cuDNN's reason why the last engine that failed could not be compiled, or "".
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine,
                                               std::chrono::nanoseconds give_up_after) override;

  // Each function returns a function that launches the work of one timed run. convolution(): the
  // convolution. convolution_with_sums(): a convolution that also computes sums, then the kernel
  // that converts the sums. convolution_and_sums(): the fastest plain convolution, then the kernel
  // that sums its output.
  std::function<void()> convolution(const ConvPlan& plan);
  std::function<void()> convolution_with_sums(const ConvPlan& plan);
  std::function<void()> convolution_and_sums();

  std::string key() const;
  bool sums() const noexcept { return pass_ == ConvPass::kForwardWithSums; }
  std::vector<ConvPlan>::iterator find(const std::string& engine);
  void make_arrays();
  float* per_channel() const { return reinterpret_cast<float*>(per_channel_->data()); }
  double* norm_sums() const { return reinterpret_cast<double*>(norm_sums_->data()); }

  const ConvPass pass_;
  const ConvShape shape_;
  const PlanLimits limits_;
  const EngineTarget target_;
  PlanCache* cache_;  // null: no engine is measured
  std::vector<ConvPlan> plans_;
  std::optional<ConvPlan> plain_;  // the plan of convolution_and_sums()
  std::string refusal_;
  // The arrays and the workspace of timed runs, allocated before the first timed run.
  std::shared_ptr<Buffer> x_, w_, y_, per_channel_, norm_sums_, norm_scratch_, workspace_;
};

}  // namespace syncopate::cuda
