// A PlanCache stores the fastest engine of each operation on each device in a file, for later runs.
// choose_engine() (plan_choice.h) looks there before it measures. The caller defines the keys.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "models/base/file_descriptor.h"

namespace syncopate::cuda {

// Reads and writes a plan file, which holds the fastest engine of each operation. Used by one
// thread only; several caches in several processes may share one file. Keys and engines are texts
// of one line without tabs.
class PlanCache {
 public:
  // Reads the plan file if there is one. If the file is damaged or has another version, a warning
  // is logged, the file counts as empty, and get_or_store() replaces it. device: a name of the
  // device on which engines are measured; no other device of this machine has the name.
  explicit PlanCache(std::filesystem::path file, std::string device = "");

  std::optional<std::string> find(const std::string& key) const;
  // Waits until no other process measures on this device, and excludes other processes from
  // measuring while the returned Turn exists, because simultaneous measurements would falsify each
  // other. Then reads the plan file again, because other processes may have stored engines. After a
  // wait of two minutes, or on a file system without locks, continues without excluding other
  // processes. While a Turn of this object exists, another call returns at once, and the exclusion
  // lasts until the first Turn ends.
  class Turn;
  [[nodiscard]] Turn take_turn();
  // Stores `engine` under `key` in the plan file, and returns the engine that the file then has for
  // `key`. If an engine is stored under `key` already, it is kept, so that all processes use the
  // same engine; but it is replaced if it is `in_place_of`, an engine that no longer works. If the
  // file cannot be written, logs one warning and stores the engine only in this object.
  std::string get_or_store(const std::string& key, const std::string& engine,
                           const std::string& in_place_of = "");

 private:
  using Entries = std::map<std::string, std::string, std::less<>>;
  Entries read();
  void write(const Entries& entries) const;

  const std::filesystem::path file_;
  const std::string device_;
  bool has_turn_ = false;
  bool takes_turns_ = true;
  Entries entries_;
  bool has_warned_ = false;  // whether a warning about the file's contents was logged
  bool keeps_ = true;
};

class PlanCache::Turn {
 public:
  Turn(PlanCache& cache, FileDescriptor lock, bool is_outer)
      : cache_(cache), lock_(std::move(lock)), is_outer_(is_outer) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_outer_) cache_.has_turn_ = false;
  }

 private:
  PlanCache& cache_;
  const FileDescriptor lock_;
  const bool is_outer_;
};

}  // namespace syncopate::cuda
