#include "models/backend/cuda/sums_choice.h"

#include <utility>

namespace syncopate::cuda {

SumsOrApart::SumsOrApart(EngineSource& with_sums, EngineSource& plain, PlanCache* cache,
                         std::string plain_key,
                         std::function<std::optional<std::chrono::nanoseconds>()> time_kernel)
    : with_sums_(with_sums),
      plain_(plain),
      cache_(cache),
      plain_key_(std::move(plain_key)),
      time_kernel_(std::move(time_kernel)) {}

std::vector<std::string> SumsOrApart::candidates() {
  std::vector<std::string> all = with_sums_.candidates();
  if (!all.empty()) all.emplace_back(kApart);
  return all;
}

bool SumsOrApart::prepare(const std::string& engine) {
  return engine == kApart || with_sums_.prepare(engine);
}

std::optional<std::chrono::nanoseconds> SumsOrApart::time(const std::string& engine) {
  if (engine != kApart) return with_sums_.time(engine);
  const std::string fastest = choose_engine(plain_, cache_, plain_key_);
  if (fastest.empty()) return std::nullopt;
  const auto convolving = plain_.time(fastest);
  const auto summing = time_kernel_();
  if (!convolving || !summing) return std::nullopt;
  return *convolving + *summing;
}

}  // namespace syncopate::cuda
