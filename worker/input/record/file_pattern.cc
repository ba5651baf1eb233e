#include "worker/input/record/file_pattern.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>

#include "models/base/errors.h"
#include "worker/input/record/folder_names.h"
#include "worker/input/record/shard_names.h"

namespace syncopate {
namespace {

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
