#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/parse_number.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/stored_weights.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";

// Parses a file name like "checkpoint-000000001234.safetensors"; nothing for any other name.
std::optional<std::int64_t> step_of(const std::string& file_name) {
  std::string_view text = file_name;
  if (!text.starts_with(kPrefix) || !text.ends_with(kSuffix)) return std::nullopt;
  if (text.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  text.remove_suffix(kSuffix.size());
  const auto step = parse_number<std::int64_t>(text);
  return step && *step >= 0 ? step : std::nullopt;
}

struct Folder {
  std::vector<std::pair<std::int64_t, fs::path>> checkpoints;  // by step, newest first
  std::vector<fs::path> temporaries;
};

// Reads the names in a checkpoint folder; a folder that does not exist has no checkpoints.
Folder read_folder(const fs::path& dir) {
  Folder folder;
  std::error_code error;
  fs::directory_iterator file(dir, error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (const auto step = step_of(name)) folder.checkpoints.emplace_back(*step, file->path());
    const std::size_t suffix = name.rfind(kTemporarySuffix);
    if (suffix != std::string::npos && step_of(name.substr(0, suffix))) {
      folder.temporaries.push_back(file->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError("read checkpoint folder " + dir.string() + ": " + error.message());
  }
  std::sort(folder.checkpoints.rbegin(), folder.checkpoints.rend());
  return folder;
}

// Whether the process that wrote the temporary file has ended: a writer locks its file.
bool is_left_over(const fs::path& temporary) {
  constexpr std::chrono::hours kAnyWriteTakesLess(1);
  // The file's permissions stay as they are, because the file may yet become a checkpoint.
  const FileDescriptor file(::open(temporary.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return false;  // the file is another user's, or another process removed it
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  // The file system has no locks, so the file's age decides.
  std::error_code error;
  const auto written = fs::last_write_time(temporary, error);
  return !error && fs::file_time_type::clock::now() - written > kAnyWriteTakesLess;
}

void remove_old(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);  // no error when another process has removed it
  if (error) throw FileError("remove old checkpoint " + path.string() + ": " + error.message());
}

}  // namespace

fs::path checkpoint_path(const fs::path& dir, std::int64_t step) {
  std::string digits = std::to_string(step);
  constexpr std::size_t kDigits = 12;  // fixed width, so that file names sort as steps do
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return dir / (std::string(kPrefix) + digits + std::string(kSuffix));
}

std::vector<fs::path> checkpoints_in(const fs::path& dir) {
  std::vector<fs::path> paths;
  for (auto& [step, path] : read_folder(dir).checkpoints) paths.push_back(std::move(path));
  return paths;
}

std::optional<fs::path> newest_checkpoint(const fs::path& dir) {
  const std::vector<fs::path> all = checkpoints_in(dir);
  if (all.empty()) return std::nullopt;
  return all.front();
}

fs::path set_aside(const fs::path& checkpoint) {
  const fs::path other = checkpoint.parent_path() / ("damaged-" + checkpoint.filename().string());
  std::error_code error;
  fs::rename(checkpoint, other, error);
  if (error) {
    throw FileError("rename " + checkpoint.string() + " to " + other.string() + ": " +
                    error.message());
  }
  return other;
}

void prune_checkpoints(const fs::path& dir, int keep, std::int64_t best) {
  check(keep >= 1, "the newest checkpoint is kept");
  const Folder folder = read_folder(dir);
  for (std::size_t i = static_cast<std::size_t>(keep); i < folder.checkpoints.size(); ++i) {
    const auto& [step, path] = folder.checkpoints[i];
    if (step != best) remove_old(path);
  }
  for (const fs::path& temporary : folder.temporaries) {
    if (is_left_over(temporary)) remove_old(temporary);
  }
}

fs::path foreign_weights_at(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return is_shard_index(path) ? path : index_of_shard(path);
  if (newest_checkpoint(path)) return {};
  for (const char* name : {"model.safetensors.index.json", "model.safetensors"}) {
    if (fs::exists(path / name, ignored)) return path / name;
  }
  return {};
}

fs::path file_or_newest_in(const fs::path& path) {
  std::error_code ignored;
  const fs::path weights = foreign_weights_at(path);
  if (!fs::is_directory(path, ignored)) {
    if (weights.empty() || weights == path) return path;
    throw UsageError(
        fmt::format("{} is one shard of the weights of a network; give {}", path.string(),
                    fs::exists(weights, ignored)
                        ? fmt::format("{}, which lists this shard and the others", weights.string())
                        : fmt::format("the .index.json of all shards, {}, and fetch it with them",
                                      weights.string())));
  }
  if (const auto newest = newest_checkpoint(path)) return *newest;
  if (!weights.empty()) {
    throw UsageError(fmt::format("{} is a folder without checkpoints; give a file, such as {}",
                                 path.string(), weights.string()));
  }
  throw UsageError(
      fmt::format("{} is a folder without checkpoints; give a file, or a folder with "
                  "checkpoint-STEP.safetensors",
                  path.string()));
}

}  // namespace syncopate
