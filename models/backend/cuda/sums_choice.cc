#include "models/backend/cuda/sums_choice.h"

#include <utility>

namespace syncopate::cuda {

SumsOrApart::SumsOrApart(EngineSource& with_sums, EngineSource& plain, PlanCache* cache,
                         std::string plain_key, TimeKernels time_kernels)
    : with_sums_(with_sums),
      plain_(plain),
      cache_(cache),
      plain_key_(std::move(plain_key)),
      time_kernels_(std::move(time_kernels)) {}

std::vector<std::string> SumsOrApart::candidates() {
  std::vector<std::string> all = with_sums_.candidates();
  if (!all.empty()) all.emplace_back(kApart);
  return all;
}

bool SumsOrApart::prepare(const std::string& engine) {
  return engine == kApart || with_sums_.prepare(engine);
}

std::optional<std::chrono::nanoseconds> SumsOrApart::time(const std::string& engine) {
  const bool apart = engine == kApart;
  const std::string convolution = apart ? choose_engine(plain_, cache_, plain_key_) : engine;
  if (convolution.empty()) return std::nullopt;
  const auto convolving = (apart ? plain_ : with_sums_).time(convolution);
  if (!convolving) return std::nullopt;
  if (kernels()) return *convolving + (apart ? kernels()->summing : kernels()->shifting);
  return apart ? std::nullopt : convolving;
}

const std::optional<SumsOrApart::KernelTimes>& SumsOrApart::kernels() {
  if (!std::exchange(has_timed_kernels_, true)) kernels_ = time_kernels_();
  return kernels_;
}

}  // namespace syncopate::cuda
