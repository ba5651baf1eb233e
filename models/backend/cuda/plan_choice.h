// Chooses the engine that computes an operation: the one that is kept as the fastest, or the one
// that is measured as the fastest now. Libraries are behind an interface, so that the policy is
// tested without them.
#pragma once

#include <chrono>
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
  // is short. If a run takes longer than `give_up_after`, a rough time is enough.
  virtual std::optional<std::chrono::nanoseconds> time(const std::string& engine,
                                                       std::chrono::nanoseconds give_up_after) = 0;
};

// Returns the engine to use and makes it ready; returns an empty name if no engine exists. Without
// a cache nothing is measured, and the first candidate is chosen. With a cache the engine kept
// under `key` is chosen, else the fastest candidate (the first of equal ones), which is then kept.
std::string choose_engine(EngineSource& source, PlanCache* cache, const std::string& key);

}  // namespace syncopate::cuda
