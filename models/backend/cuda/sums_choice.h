// Decides whether a convolution also writes the sums that a batch norm needs of its output, or a
// kernel of ours reads the output for them. cuDNN has fewer engines that sum, and they may be
// slower by more than our kernel costs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/plan_choice.h"

namespace syncopate::cuda {

// Offers the engines that sum a convolution's output and, as the last candidate, the fastest engine
// that does not sum followed by our kernel.
class SumsOrApart final : public EngineSource {
 public:
  static constexpr const char* kApart = "apart";

  // The times of our kernels that sum a convolution's output; absent if they cannot be tried.
  struct KernelTimes {
    std::chrono::nanoseconds summing;   // of the kernel that sums the output
    std::chrono::nanoseconds shifting;  // of the kernel that takes over a convolution's sums
  };
  using TimeKernels = std::function<std::optional<KernelTimes>()>;

  // plain offers the engines of the same convolution without sums, kept under plain_key. All given
  // references outlive this object.
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
