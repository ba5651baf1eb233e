#include "models/backend/cuda/plan_choice.h"

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
  const auto kept = cache == nullptr ? std::nullopt : cache->find(key);
  if (kept && source.prepare(*kept)) return *kept;
  const std::vector<std::string> candidates = source.candidates();
  if (candidates.empty()) return "";
  if (cache == nullptr) return candidates.front();
  const std::string* const fastest = fastest_of(candidates, source);
  // No engine could be measured, so no choice is kept.
  if (fastest == nullptr) return candidates.front();
  // Another process may have settled the operation's key first.
  const std::string settled = cache->settle(key, *fastest, kept.value_or(""));
  return settled == *fastest || source.prepare(settled) ? settled : *fastest;
}

}  // namespace syncopate::cuda
