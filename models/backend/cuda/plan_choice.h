// Which of several engines computes an operation: the one that is kept as the fastest, or the one
// that is fastest now. Libraries stand behind an interface, so that the policy is tested without
// one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/plan_cache.h"

namespace syncopate::cuda {

// One operation's engines, by name. Asking for candidates and preparing one by name are slow.
class EngineSource {
 public:
  virtual ~EngineSource() = default;
  // A few that fit, ready to run, best first by the library's own judgement.
  virtual std::vector<std::string> candidates() = 0;
  // Makes this one ready; false where it is not offered (any more).
  virtual bool prepare(const std::string& engine) = 0;
  // Of one run of a candidate; none where it cannot be run here, or there is no memory to try.
  virtual std::optional<std::chrono::nanoseconds> time(const std::string& engine) = 0;
};

// The engine to use, which is ready then; empty where there is none. Without a cache nothing is
// measured, and the first candidate is it. With one: what is kept under `key`; else the fastest
// candidate (of equals the first), which is kept.
std::string choose_engine(EngineSource& source, PlanCache* cache, const std::string& key);

}  // namespace syncopate::cuda
