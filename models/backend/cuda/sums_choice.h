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

  // plain: the same convolution's engines that do not sum, kept under plain_key. time_kernel: of
  // summing its output; none where that cannot be tried. All outlive this.
  SumsOrApart(EngineSource& with_sums, EngineSource& plain, PlanCache* cache, std::string plain_key,
              std::function<std::optional<std::chrono::nanoseconds>()> time_kernel);

  std::vector<std::string> candidates() override;
  bool prepare(const std::string& engine) override;
  std::optional<std::chrono::nanoseconds> time(const std::string& engine) override;

 private:
  EngineSource& with_sums_;
  EngineSource& plain_;
  PlanCache* const cache_;
  const std::string plain_key_;
  const std::function<std::optional<std::chrono::nanoseconds>()> time_kernel_;
};

}  // namespace syncopate::cuda
