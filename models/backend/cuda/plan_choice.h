// Chooses the engine that computes an operation: the one that is kept as the fastest, or the one
// that is measured as the fastest now. Libraries are behind an interface, so that the policy is
// tested without them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/plan_cache.h"

namespace syncopate::cuda {

// An EngineSource offers the engines of one operation, by name. candidates() and prepare() are
// slow.
class EngineSource {
 public:
  virtual ~EngineSource() = default;
  // Returns the names of a few engines that support the operation, ready to run, in library order.
  virtual std::vector<std::string> candidates() = 0;
  // Makes the named engine ready; returns false if the library does not offer it.
  virtual bool prepare(const std::string& engine) = 0;
  // Returns the time of one run of a candidate engine, or no value if it cannot run here or memory
  // is short.
  virtual std::optional<std::chrono::nanoseconds> time(const std::string& engine) = 0;
};

// Returns the engine to use and makes it ready; returns an empty name if no engine exists. Without
// a cache nothing is measured, and the first candidate is chosen. With a cache the engine kept
// under `key` is chosen, else the fastest candidate (the first of equal ones), which is then kept.
std::string choose_engine(EngineSource& source, PlanCache* cache, const std::string& key);

// Decides whether a convolution also writes the sums that a batch norm needs of its output, or a
// kernel of ours reads the output for them: cuDNN has fewer engines that sum, and they may be
// slower by more than our kernel costs. The candidates are the engines that sum and, as the last
// one, the fastest engine that does not sum followed by our kernel.
class SumsOrApart final : public EngineSource {
 public:
  static constexpr const char* kApart = "apart";

  // The times of our kernels that sum a convolution's output; absent if they cannot be tried.
  struct KernelTimes {
    std::chrono::nanoseconds summing;   // of the kernel that sums the output
    std::chrono::nanoseconds shifting;  // of the kernel that converts a convolution's sums
  };
  using TimeKernels = std::function<std::optional<KernelTimes>()>;

  // with_sums offers engines that also compute sums, plain those that only convolve. The cache
  // keeps the fastest plain engine under plain_key. All three must outlive this object.
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
