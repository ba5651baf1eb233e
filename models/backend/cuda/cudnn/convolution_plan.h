// Convolutions by cuDNN: lists the engines that support a convolution, and makes one of them ready
// to run.
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

// The device to choose engines for: a real one, or a description of a device that need not be
// present. Used by one thread only.
class PlanTarget {
 public:
  // The cuDNN handle must outlive the PlanTarget and all ConvPlans made for it.
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  // json holds the properties of a device in cuDNN's serialised form. Throws DeviceError.
  static PlanTarget described(std::string_view json);

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Descriptor* properties() const noexcept { return properties_.get(); }

 private:
  PlanTarget() = default;
  cudnnHandle_t handle_ = nullptr;
  std::unique_ptr<Descriptor> properties_;
};

// A ConvPlan is one convolution with one engine. It is compiled once and may run any number of
// times.
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

// ConvOffers lists the engines that cuDNN offers, in the order of its own ranking. If the
// device is only described and not present, engines that must be compiled on the device are counted
// but get no plan.
struct ConvOffers {
  int engines = 0;              // that support the convolution; on a real device up to `most` plans
  int left_for_the_device = 0;  // engines that compile on the device at run time
  std::vector<ConvPlan> plans;  // compiled plans, not more than plan_convolution()'s `most`
  std::string refusal;          // cuDNN's reason for the last failure
};
ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most);
// Returns the plan with the given engine(), or no value if cuDNN does not offer the engine.
std::optional<ConvPlan> plan_convolution(ConvPass pass, const ConvShape& shape,
                                         const PlanTarget& target, const PlanLimits& limits,
                                         const std::string& engine);

}  // namespace syncopate::cuda
