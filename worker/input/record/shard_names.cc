#include "worker/input/record/shard_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <tuple>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

constexpr std::size_t kMostDigits = 6;  // so that the numbers can be counted through

// The parts of a name "BEFORE-00002-of-00008AFTER".
struct ShardName {
  std::string before;
  std::string number;
  std::string count;
  std::string after;  // an extension
};

std::optional<ShardName> parse(const std::string& path) {
  static const std::regex kForm(R"((.*)-(\d{1,6})-of-(\d{1,6})((\.\w+)*))");
  std::smatch parts;
  if (!std::regex_match(path, parts, kForm)) return std::nullopt;
  return ShardName{parts[1], parts[2], parts[3], parts[4]};
}

}  // namespace

void require_all_shards(std::string_view data_name, std::span<const std::filesystem::path> files,
                        const std::function<bool(const std::string& path)>& is_wanted,
                        std::string_view advice) {
  struct Found {
    std::set<int> numbers;
    // Of the shortest number: "0" in names without leading zeros, all digits in the others.
    std::size_t num_digits = kMostDigits;
  };
  // By what the names of one set have in common.
  std::map<std::tuple<std::string, std::string, std::string>, Found> sets;
  for (const std::filesystem::path& file : files) {
    const auto name = parse(file.string());
    if (!name) continue;
    Found& found = sets[{name->before, name->count, name->after}];
    found.num_digits = std::min(found.num_digits, name->number.size());
    found.numbers.insert(std::stoi(name->number));
  }
  for (const auto& [common, found] : sets) {
    const auto& [before, count, after] = common;
    const std::set<int>& numbers = found.numbers;
    const int num_shards = std::stoi(count);
    const int first = numbers.contains(num_shards) ? 1 : 0;  // some programs count from 1
    for (int number = first; number < first + num_shards; ++number) {
      if (numbers.contains(number)) continue;
      const std::string path =
          fmt::format("{}-{:0{}}-of-{}{}", before, number, found.num_digits, count, after);
      if (!is_wanted(path)) continue;
      const std::filesystem::path missing(path);
      throw UsageError(fmt::format(
          "--data {}: {}: {} of {} shards are there; the first that is missing is {}; {}",
          data_name, missing.has_parent_path() ? missing.parent_path().string() : ".",
          numbers.size(), num_shards, missing.filename().string(), advice));
    }
  }
}

void warn_about_gaps(std::string_view data_name, std::span<const std::filesystem::path> files) {
  std::set<int> numbers;
  for (const std::filesystem::path& file : files) {
    const std::string stem = file.stem().string();
    const bool is_number =
        !stem.empty() && stem.size() <= kMostDigits &&
        std::ranges::all_of(stem, [](char letter) { return letter >= '0' && letter <= '9'; });
    if (is_number) numbers.insert(std::stoi(stem));
  }
  if (numbers.empty()) return;
  const std::string extension = files.front().extension().string();
  std::vector<std::string> missing;
  for (int number = 0; number < *numbers.rbegin(); ++number) {
    if (!numbers.contains(number)) missing.push_back(std::to_string(number) + extension);
  }
  if (missing.empty()) return;
  constexpr std::size_t kMostNamed = 5;
  const std::size_t more = missing.size() - std::min(missing.size(), kMostNamed);
  missing.resize(missing.size() - more);
  log(LogLevel::kWarning,
      fmt::format("--data {}: {} has files up to {}{}, but not {}{}; fetch what is missing",
                  data_name, files.front().parent_path().string(), *numbers.rbegin(), extension,
                  fmt::join(missing, ", "), more == 0 ? "" : fmt::format(" and {} more", more)));
}

}  // namespace syncopate
