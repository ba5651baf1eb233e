// A PlanCache keeps in a file, between runs, the fastest engine of each operation on each device.
// choose_engine (plan_choice.h) consults it first. The caller defines the keys.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "models/base/file_descriptor.h"

namespace syncopate::cuda {

// A PlanCache is used by one thread only; several caches in several processes may share one file.
// Keys and engines are lines of text without tabs.
class PlanCache {
 public:
  // Reads the plan file if there is one. A file that is damaged or has another version counts as
  // empty, with a warning, and get_or_store() replaces it. device: names the device on this machine
  // that engines are measured on.
  explicit PlanCache(std::filesystem::path file, std::string device = "");

  std::optional<std::string> find(const std::string& key) const;
  // Excludes the measurements of other processes on this device while the result exists, since they
  // would make both wrong. Then reads the plan file again: others may have added to it. Waits up to
  // two minutes, and does not exclude others after that, or where files have no locks. A
  // measurement within another one is part of its turn.
  class Turn;
  [[nodiscard]] Turn take_turn();
  // Adds the entry `key`: `engine` to the plan file and returns the engine that the file then
  // holds. An existing entry is kept, so that all processes use one engine, unless it is
  // `in_place_of`, an engine that no longer works. If the file cannot be written, one warning is
  // logged and the entry exists in this object only.
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
  bool has_warned_ = false;  // a warning about the file's content was logged
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
