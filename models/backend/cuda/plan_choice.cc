#include "models/backend/cuda/plan_choice.h"

#include <utility>

namespace syncopate::cuda {
namespace {

// Returns the name of the fastest engine, or null if no candidate could be timed.
const std::string* fastest_of(const std::vector<std::string>& candidates, EngineSource& source) {
  if (candidates.size() == 1) return &candidates.front();
  const std::string* fastest = nullptr;
  std::chrono::nanoseconds shortest{};
  for (const std::string& engine : candidates) {
    const auto time = source.time(engine);
    if (!time || (fastest != nullptr && *time >= shortest)) continue;
    fastest = &engine;
    shortest = *time;
  }
  return fastest;
}

}  // namespace

std::string choose_engine(EngineSource& source, PlanCache* cache, const std::string& key) {
  auto kept = cache == nullptr ? std::nullopt : cache->find(key);
  if (kept && source.prepare(*kept)) return *kept;
  if (cache == nullptr) {
    const std::vector<std::string> candidates = source.candidates();
    return candidates.empty() ? "" : candidates.front();
  }
  const PlanCache::Turn turn = cache->take_turn();
  if (!kept) {
    kept = cache->find(key);  // another process has measured it before this one's turn
    if (kept && source.prepare(*kept)) return *kept;
  }
  const std::vector<std::string> candidates = source.candidates();
  if (candidates.empty()) return "";
  const std::string* const fastest = fastest_of(candidates, source);
  // No engine could be measured, so no choice is kept.
  if (fastest == nullptr) return candidates.front();
  // get_or_store() returns another engine if another process has already stored one for this
  // operation.
  const std::string stored = cache->get_or_store(key, *fastest, kept.value_or(""));
  return stored == *fastest || source.prepare(stored) ? stored : *fastest;
}

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
