#include "worker/input/record/folder_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "models/base/errors.h"

namespace syncopate {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path,
                                   const std::error_code& error) {
  throw FileError(
      fmt::format("read {}: {}; let this user read it (ls -ld shows who may), or give another "
                  "--data",
                  path.string(), error.message()));
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

}  // namespace syncopate
