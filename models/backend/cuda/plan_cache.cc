#include "models/backend/cuda/plan_cache.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/log.h"
#include "models/base/replacing_file.h"

namespace syncopate::cuda {
namespace {

// The plan file stores measured engines. It consists of the line kHeader, one line "KEY tab ENGINE"
// per entry, and "end" with the number of entries. The last line shows that the file is complete.
constexpr const char* kHeader = "syncopate plans 1";
constexpr std::chrono::seconds kLockTimeout(5);
constexpr std::chrono::seconds kTurnTimeout(120);
constexpr std::chrono::milliseconds kPlanCachePollInterval(5);

// Locks a lock file, which excludes other processes and other threads of this process.
FileDescriptor lock(const std::string& path, std::chrono::seconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  for (;;) {
    FileLock lock = try_lock_file(path);
    if (lock.outcome == FileLock::Outcome::kHeld) return std::move(lock.file);
    if (lock.outcome == FileLock::Outcome::kUnsupported) {
      throw FileError("lock " + path + ": its file system has no locks");
    }
    if (deadline.passed()) {
      throw FileError(fmt::format("lock {}: another process has held it for {}", path,
                                  in_seconds(deadline.timeout())));
    }
    std::this_thread::sleep_for(kPlanCachePollInterval);
  }
}

}  // namespace

PlanCache::PlanCache(std::filesystem::path file, std::string device)
    : file_(std::move(file)), device_(std::move(device)) {
  entries_ = read();
}

std::optional<std::string> PlanCache::find(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

std::string PlanCache::get_or_store(const std::string& key, const std::string& engine,
                                    const std::string& in_place_of) {
  const auto put = [&](Entries& entries) {
    const auto [entry, is_new] = entries.try_emplace(key, engine);
    if (entry->second == in_place_of) entry->second = engine;
  };
  put(entries_);
  if (!keeps_) return entries_.at(key);
  try {
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
    const FileDescriptor held = lock(file_.string() + ".lock", kLockTimeout);
    Entries kept = read();
    // put() does not replace an entry that another process has already written to the plan file.
    put(kept);
    write(kept);
    entries_ = std::move(kept);
  } catch (const std::exception& error) {
    keeps_ = false;
    log(LogLevel::kWarning, fmt::format("what was measured of the GPU is not kept for other runs: "
                                        "{}; choose another --cache-dir",
                                        error.what()));
  }
  return entries_.at(key);
}

PlanCache::Turn PlanCache::take_turn() {
  if (has_turn_ || !takes_turns_) return {*this, FileDescriptor(), false};
  FileDescriptor held;
  try {
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
    held = lock(fmt::format("{}.{}.timing", file_.string(), device_), kTurnTimeout);
    Entries kept = read();
    entries_.merge(kept);
  } catch (const std::exception& error) {
    takes_turns_ = false;
    log(LogLevel::kWarning,
        fmt::format("engines of the GPU are measured although another process may measure, too: {}",
                    error.what()));
  }
  has_turn_ = true;
  return {*this, std::move(held), true};
}

PlanCache::Entries PlanCache::read() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return {};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const std::string text = bytes.str();
  std::istringstream lines(text);
  Entries entries;
  std::string line;
  std::size_t count = 0;
  bool is_whole = false;
  if (std::getline(lines, line) && line == kHeader) {
    while (std::getline(lines, line) && !line.starts_with("end ")) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos) break;
      entries.emplace(line.substr(0, tab), line.substr(tab + 1));
      ++count;
    }
    is_whole =
        line == fmt::format("end {}", count) && text.ends_with('\n') && !std::getline(lines, line);
  }
  if (is_whole) return entries;
  if (!has_warned_) {
    log(LogLevel::kWarning, file_.string() +
                                ": damaged, or of another version of this program; what is fastest "
                                "on this GPU is measured again");
  }
  has_warned_ = true;
  return {};
}

void PlanCache::write(const Entries& entries) const {
  std::string text = std::string(kHeader) + "\n";
  for (const auto& [key, engine] : entries) text += key + "\t" + engine + "\n";
  text += fmt::format("end {}\n", entries.size());
  replace_file(file_, text);
}

}  // namespace syncopate::cuda
