// Chooses the engine that computes an operation: the engine that the plan cache names, or else the
// engine that is fastest in a measurement. EngineSource hides the libraries, so that this policy
// can be tested without them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "models/backend/cuda/plan_cache.h"

namespace syncopate::cuda {

// The engines of one operation, by name. candidates() and prepare() are slow, because they compile
// engines.
class EngineSource {
 public:
  virtual ~EngineSource() = default;
  // Makes a few engines that support the operation ready to run, and returns their names in the
  // order of the library's ranking.
  virtual std::vector<std::string> candidates() = 0;
  // Makes the engine with this name ready to run. Returns false if the library does not offer the
  // engine.
  virtual bool prepare(const std::string& engine) = 0;
  // Returns the time of one run of a candidate engine. Returns nullopt if the engine cannot run on
  // this device or memory is short. If a run takes longer than `give_up_after`, the returned time
  // may be inexact.
  virtual std::optional<std::chrono::nanoseconds> time(const std::string& engine,
                                                       std::chrono::nanoseconds give_up_after) = 0;
};

// Chooses an engine, makes it ready and returns its name; returns "" if there is no engine. Without
// a cache, no engine is measured, and the first candidate is chosen. With a cache, the engine
// stored under `key` is chosen. If none is stored, the fastest candidate is chosen and stored under
// `key`; of equally fast candidates, the first.
std::string choose_engine(EngineSource& source, PlanCache* cache, const std::string& key);

}  // namespace syncopate::cuda
