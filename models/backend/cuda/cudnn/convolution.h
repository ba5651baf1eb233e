// Convolutions by cuDNN: which of its engines fit, and one of them ready to run.
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

// The device for which engines are chosen: a real one, or a described one, which need not be here.
// One thread only.
class PlanTarget {
 public:
  // Must outlive the target and what is planned for it.
  explicit PlanTarget(cudnnHandle_t handle) : handle_(handle) {}
  // json: as cuDNN writes a device's properties. Throws DeviceError.
  static PlanTarget described(std::string_view json);

  cudnnHandle_t handle() const noexcept { return handle_; }
  const Descriptor* properties() const noexcept { return properties_.get(); }

 private:
  PlanTarget() = default;
  cudnnHandle_t handle_ = nullptr;
  std::unique_ptr<Descriptor> properties_;
};

// One convolution with one engine. Compiled once; runs as often as wanted.
class ConvPlan {
 public:
  ConvPlan(ConvPass pass, std::unique_ptr<Descriptor> plan, std::string engine);

  std::int64_t workspace_bytes() const noexcept { return workspace_bytes_; }
  // Its number and what its knobs are set to: "42 2=5 24=0".
  const std::string& engine() const noexcept { return engine_; }

  // Starts it on the handle's stream. Throws DeviceError.
  void run(cudnnHandle_t handle, const ConvArrays& arrays) const;

 private:
  ConvPass pass_;
  std::unique_ptr<Descriptor> plan_;
  std::string engine_;
  std::int64_t workspace_bytes_ = 0;
};

// What cuDNN offers, best first by its own judgement; those it can only compile on the device
// itself are counted, not made ready, where the target is only described.
struct ConvOffers {
  int engines = 0;              // that fit
  int left_for_the_device = 0;  // of these: compiled at run time
  std::vector<ConvPlan> plans;  // at most `most`
  std::string refusal;          // what cuDNN said of the last one that could not be made ready
};
ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most);
// The one with this engine(); none where it is not offered.
std::optional<ConvPlan> plan_convolution(ConvPass pass, const ConvShape& shape,
                                         const PlanTarget& target, const PlanLimits& limits,
                                         const std::string& engine);

}  // namespace syncopate::cuda
