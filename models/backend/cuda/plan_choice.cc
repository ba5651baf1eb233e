#include "models/backend/cuda/plan_choice.h"

#include <algorithm>

namespace syncopate::cuda {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kHostMayTake = 200us;

// Returns the name of the fastest engine, or null if no candidate could be timed.
const std::string* fastest_of(const std::vector<std::string>& candidates, EngineSource& source) {
  if (candidates.size() == 1) return &candidates.front();
  const std::string* fastest = nullptr;
  std::chrono::nanoseconds shortest = 10s;
  for (const std::string& engine : candidates) {
    // An engine clearly slower than the fastest so far is not timed precisely. Run alone it takes
    // longer than in a captured graph, by what the host takes to start it.
    const auto time = source.time(engine, shortest + std::max(shortest / 2, kHostMayTake));
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

}  // namespace syncopate::cuda
