// Chooses cuDNN's engine for one convolution (plan_choice.h): lists the engines, and times them on
// the present device with separate arrays.
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

// Where convolutions run and are timed: the calling thread's device.
struct EngineTarget {
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;  // the stream of the handle
  std::string name;               // the versions and the device on which the fastest engine depends
};

// A ConvolutionEngines is used by one thread only.
class ConvolutionEngines final : private EngineSource {
 public:
  // cache: keeps the fastest engines; null: nothing is measured, and cuDNN's first engine is taken.
  ConvolutionEngines(ConvPass pass, const ConvShape& shape, const PlanLimits& limits,
                     const EngineTarget& target, PlanCache* cache);

  // Returns the plan of the chosen engine, or no value if there is no engine. For kForwardWithSums
  // also returns no value if a plain convolution and a kernel of ours for the sums are faster:
  // cuDNN has fewer engines that sum. Called once. Throws DeviceError.
  std::optional<ConvPlan> choose();
  // Returns cuDNN's reason why the last engine that failed could not be compiled, or "".
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine,
                                               std::chrono::nanoseconds give_up_after) override;

  // Each returns what a timed run starts: a convolution alone; one that sums and the kernel that
  // converts its sums; the fastest plain convolution and the kernel that sums its output.
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
  PlanCache* cache_;  // null: nothing is measured
  std::vector<ConvPlan> plans_;
  std::optional<ConvPlan> plain_;  // the fastest plain engine, if it was asked for
  std::string refusal_;
  // The memory of timed runs, allocated when it is first needed.
  std::shared_ptr<Buffer> x_, w_, y_, per_channel_, norm_sums_, norm_scratch_, workspace_;
};

}  // namespace syncopate::cuda
