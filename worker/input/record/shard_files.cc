#include "worker/input/record/shard_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <system_error>
#include <tuple>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path,
                                   const std::error_code& error) {
  throw FileError(
      fmt::format("read {}: {}; let this user read it (ls -ld shows who may), or give another "
                  "--data",
                  path.string(), error.message()));
}

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

// Whether a path matches a pattern. Braces are alternatives for glob(3), but not for fnmatch(3).
bool matches(const std::string& pattern, const std::string& path) {
  std::string extended;
  int depth = 0;  // of braces
  for (const char letter : pattern) {
    if (letter == '{') {
      extended += "@(";
      ++depth;
    } else if (letter == '}' && depth > 0) {
      extended += ')';
      --depth;
    } else {
      extended += letter == ',' && depth > 0 ? '|' : letter;
    }
  }
  return ::fnmatch(extended.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD | FNM_EXTMATCH) == 0;
}

// Throws FileError if the folder before the first wildcard cannot be read.
void require_readable_folder(const std::string& pattern) {
  const std::string fixed = pattern.substr(0, pattern.find_first_of("*?[{\\"));
  const std::filesystem::path folder = std::filesystem::path(fixed).parent_path();
  names_in_folder(folder.empty() ? "." : folder);
  if (fixed == pattern) is_there(pattern);
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (error) throw_unreadable(path, error);
  return true;
}

std::vector<std::string> names_in_folder(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  if (!is_there(folder) || !std::filesystem::is_directory(folder, error)) return names;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename().string());
  }
  if (error) throw_unreadable(folder, error);
  std::ranges::sort(names);
  return names;
}

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

std::vector<std::filesystem::path> files_of_pattern(const std::string& pattern) {
  glob_t found = {};
  const auto is_unreadable = [](const char* /*path*/, int error) {
    return static_cast<int>(error != ENOENT && error != ENOTDIR);  // anything but 0 ends the search
  };
  const int code = ::glob(pattern.c_str(), GLOB_BRACE, is_unreadable, &found);
  std::vector<std::filesystem::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (code == GLOB_ABORTED) {
    require_readable_folder(pattern);
    throw FileError(fmt::format(
        "--data tfrecord: a folder in which files of {} may be cannot be read; let this user read "
        "it, or give a pattern without it",
        pattern));
  }
  const bool found_folder = !paths.empty();
  std::erase_if(paths, [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
  });
  // Two alternatives may match the same file.
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (!paths.empty()) {
    require_all_shards(
        "tfrecord", paths, [&](const std::string& path) { return matches(pattern, path); },
        "fetch what is missing, or give a pattern that names the others, such as "
        "'a-{00000,00002}-of-*'");
    return paths;
  }
  if (found_folder) {
    throw UsageError(
        fmt::format("--data tfrecord: {0} is a folder; expected a pattern of its files, such as "
                    "'{0}/*.tfrecord', in quotation marks",
                    std::filesystem::path(pattern + "/").parent_path().string()));
  }
  require_readable_folder(pattern);
  throw UsageError(
      fmt::format("--data tfrecord: no file matches {}; expected a pattern such as "
                  "'data/train-*.tfrecord', in quotation marks",
                  pattern));
}

}  // namespace syncopate
