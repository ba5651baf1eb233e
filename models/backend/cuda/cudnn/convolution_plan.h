// Convolutions by cuDNN: lists the engines that support a convolution, and compiles engines to
// plans.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/cuda/cudnn/descriptor.h"
#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// The device for which engines are chosen: a present device, or a device that is only described.
// Used by one thread only.
class PlanTarget {
 public:
  // Makes the target of a present device, which has the cuDNN handle `handle`. The handle must
  // outlive the PlanTarget and all ConvPlans made for this target.
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  // Makes the target of a device that is not present. json: the properties of the device in cuDNN's
  // serialised form. Throws DeviceError.
  static PlanTarget described(std::string_view json);

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Descriptor* properties() const noexcept { return properties_.get(); }

 private:
  PlanTarget() = default;
  cudnnHandle_t handle_ = nullptr;
  std::unique_ptr<Descriptor> properties_;
};

// A convolution compiled for one engine. A plan may run any number of times.
class ConvPlan {
 public:
  ConvPlan(ConvPass pass, std::unique_ptr<Descriptor> plan, std::string engine);

  std::int64_t workspace_bytes() const noexcept { return workspace_bytes_; }
  // Returns the number of the cuDNN engine and the settings of its knobs, such as "42 2=5 24=0".
  const std::string& engine() const noexcept { return engine_; }

  // Starts the convolution on the stream of the cuDNN handle. Throws DeviceError.
  void run(cudnnHandle_t handle, const ConvArrays& arrays) const;

 private:
  ConvPass pass_;
  std::unique_ptr<Descriptor> plan_;
  std::string engine_;
  std::int64_t workspace_bytes_ = 0;
};

// The engines that cuDNN offers for a convolution, in the order of cuDNN's ranking. If the device
// is only described, engines that must be compiled on the device are counted but get no plan.
struct ConvOffers {
  int engines = 0;  // engines that support the convolution; on a present device, counting stops at
                    // `most` plans
  int left_for_the_device = 0;  // engines that must be compiled on the device
  std::vector<ConvPlan> plans;  // at most `most` plans
  std::string refusal;          // cuDNN's reason for the last failure
};
ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most);
// Returns the plan of the engine with the name `engine` (ConvPlan::engine), or nullopt if cuDNN
// does not offer this engine.
std::optional<ConvPlan> plan_convolution(ConvPass pass, const ConvShape& shape,
                                         const PlanTarget& target, const PlanLimits& limits,
                                         const std::string& engine);

}  // namespace syncopate::cuda
