// Convolutions by cuDNN: which of its engines fit, and one of them ready to run. Maps are NHWC,
// weights KRSC, all of one type; sums are f32.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/backend/cuda/cudnn/descriptor.h"

namespace syncopate::cuda {

enum class ConvPass : std::uint8_t { kForward, kInputGradient, kWeightGradient };
std::string_view name(ConvPass pass) noexcept;

struct ConvShape {
  std::int64_t n = 1;
  std::int64_t height = 1, width = 1, channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t kernel_h = 3, kernel_w = 3;
  std::int64_t stride = 1, pad = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;  // of x, w and y

  std::int64_t out_height() const { return (height + 2 * pad - kernel_h) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * pad - kernel_w) / stride + 1; }
};
std::string to_string(const ConvShape& shape);

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

struct PlanLimits {
  bool deterministic = false;  // no engine whose result depends on timing
  bool rounds_inputs = true;   // f32 may be rounded to TF32 for the tensor cores
  std::int64_t most_workspace_bytes = std::int64_t{256} << 20;
};

// One convolution with one engine. Compiled once; runs as often as wanted.
class ConvPlan {
 public:
  ConvPlan(std::unique_ptr<Descriptor> plan, std::string engine);

  std::int64_t workspace_bytes() const noexcept { return workspace_bytes_; }
  const std::string& engine() const noexcept { return engine_; }  // "engine 42"

  // Starts it on the handle's stream. kForward: x, w -> y; kInputGradient: y, w -> x;
  // kWeightGradient: x, y -> w, where y is the gradient of the output. All on the device. Throws
  // DeviceError.
  void run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace) const;

 private:
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
};
ConvOffers plan_convolution(ConvPass pass, const ConvShape& shape, const PlanTarget& target,
                            const PlanLimits& limits, int most);

}  // namespace syncopate::cuda
