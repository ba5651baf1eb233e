// Which engine was fastest for which operation on which device, kept in a file between runs:
// whoever has to choose asks it first (plan_choice.h). What a key means is the caller's business.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace syncopate::cuda {

// One thread only; any number of caches, in any number of processes, may stand on one file.
// Keys and engines are lines of text without tabs.
class PlanCache {
 public:
  // Reads the file if there is one. One that is damaged or of another version counts as empty, with
  // a warning, and is written anew by settle().
  explicit PlanCache(std::filesystem::path file);

  std::optional<std::string> find(const std::string& key) const;
  // Keeps `engine` for `key`, beside all that others wrote meanwhile, and returns what is kept from
  // now on: of several that settle the same key the first one decides, so that they agree (unless
  // it is `in_place_of`, which turned out to be of no use). A file that cannot be written is one
  // warning; the choice then lasts as long as this.
  std::string settle(const std::string& key, const std::string& engine,
                     const std::string& in_place_of = "");

 private:
  using Entries = std::map<std::string, std::string, std::less<>>;
  Entries read();
  void write(const Entries& entries) const;

  const std::filesystem::path file_;
  Entries entries_;
  bool has_warned_ = false;  // of what the file holds
  bool keeps_ = true;
};

}  // namespace syncopate::cuda
