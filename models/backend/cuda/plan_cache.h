// A PlanCache keeps in a file, between runs, which engine was fastest for which operation on which
// device. choose_engine (plan_choice.h) consults it first. The caller defines the keys.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace syncopate::cuda {

// A PlanCache is used by one thread only; several caches in several processes may share one file.
// Keys and engines are lines of text without tabs.
class PlanCache {
 public:
  // Reads the plan file if there is one. A file that is damaged or has another version counts as
  // empty, with a warning, and get_or_store() replaces it.
  explicit PlanCache(std::filesystem::path file);

  std::optional<std::string> find(const std::string& key) const;
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
  Entries entries_;
  bool has_warned_ = false;  // a warning about the file's content was logged
  bool keeps_ = true;
};

}  // namespace syncopate::cuda
