// Whether a convolution leaves the sums that a batch norm wants of its output, or a kernel of ours
// reads the output for them: cuDNN's engines that sum are fewer, and may be slower by more than
// that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/plan_choice.h"

namespace syncopate::cuda {

// Engines that sum, and as one more of them, the last: the fastest that does not, and the kernel.
class SumsOrApart final : public EngineSource {
 public:
  static constexpr const char* kApart = "apart";

  // How long our kernels take; none where that cannot be tried.
  struct KernelTimes {
    std::chrono::nanoseconds summing;   // the output
    std::chrono::nanoseconds shifting;  // sums that a convolution has left
  };
  using TimeKernels = std::function<std::optional<KernelTimes>()>;

  // plain: the same convolution's engines that do not sum, kept under plain_key. All outlive this.
  SumsOrApart(EngineSource& with_sums, EngineSource& plain, PlanCache* cache, std::string plain_key,
              TimeKernels time_kernels);

  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine) override;

 private:
  const std::optional<KernelTimes>& kernels();

  EngineSource& with_sums_;
  EngineSource& plain_;
  PlanCache* const cache_;
  const std::string plain_key_;
  const TimeKernels time_kernels_;
  bool has_timed_kernels_ = false;
  std::optional<KernelTimes> kernels_;
};

}  // namespace syncopate::cuda
