#include "worker/input/record/shard_names.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <tuple>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// The parts of a name "BEFORE-00002-of-00008AFTER".
struct ShardName {
  std::string before;
  std::string number;
  std::string count;
  std::string after;  // an extension
};

std::optional<ShardName> parse(const std::string& path) {
  // At most 6 digits, so that the numbers can be counted through.
  static const std::regex kForm(R"((.*)-(\d{1,6})-of-(\d{1,6})((\.\w+)*))");
  std::smatch parts;
  if (!std::regex_match(path, parts, kForm)) return std::nullopt;
  return ShardName{parts[1], parts[2], parts[3], parts[4]};
}

}  // namespace

void require_all_shards(std::string_view data_name, std::span<const std::filesystem::path> files,
                        const std::function<bool(const std::string& path)>& is_wanted,
                        std::string_view advice) {
  // The numbers that are there, by what the names of one set have in common.
  std::map<std::tuple<std::string, std::string, std::string>, std::set<int>> sets;
  std::size_t num_digits = 0;
  for (const std::filesystem::path& file : files) {
    const auto name = parse(file.string());
    if (!name) continue;
    num_digits = name->number.size();
    sets[{name->before, name->count, name->after}].insert(std::stoi(name->number));
  }
  for (const auto& [common, numbers] : sets) {
    const auto& [before, count, after] = common;
    const int num_shards = std::stoi(count);
    const int first = numbers.contains(num_shards) ? 1 : 0;  // some programs count from 1
    for (int number = first; number < first + num_shards; ++number) {
      if (numbers.contains(number)) continue;
      const std::string path =
          fmt::format("{}-{:0{}}-of-{}{}", before, number, num_digits, count, after);
      if (!is_wanted(path)) continue;
      const std::filesystem::path missing(path);
      throw UsageError(fmt::format(
          "--data {}: {}: {} of {} shards are there; the first that is missing is {}; {}",
          data_name, missing.has_parent_path() ? missing.parent_path().string() : ".",
          numbers.size(), num_shards, missing.filename().string(), advice));
    }
  }
}

}  // namespace syncopate
