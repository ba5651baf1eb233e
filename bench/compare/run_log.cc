#include "bench/compare/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "deploy/launch/role_process.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kLaunch = "launch: ";

}  // namespace

bool RunLog::Failure::is_wanted(const std::set<std::string>& killed) const {
  return killed.contains(role) && how == describe(RoleEnding{.signal = SIGKILL});
}

RunLog::RunLog(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!file_) throw FileError(describe_errno("open the log", path.string(), errno));
}

bool RunLog::read_from(std::size_t stream, int descriptor) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    keep(stream, {buffer.data(), static_cast<std::size_t>(count)});
  }
}

void RunLog::keep(std::size_t stream, std::string_view text) {
  // A failed write to the log file is ignored; writing the run's result reports a full disk.
  [[maybe_unused]] const ssize_t written = ::write(file_.get(), text.data(), text.size());
  std::string& line = unfinished_.at(stream);
  for (const char c : text) {
    if (c != '\n') {
      line += c;
    } else {
      if (!line.empty()) take_line(line);
      line.clear();
    }
  }
}

void RunLog::take_line(const std::string& line) {
  last_line_ = line;
  if (line.starts_with(kLaunch))
    return take_launch_line(std::string_view(line).substr(kLaunch.size()));
  const std::size_t end = line.find("] ");
  if (line.front() == '[' && end != std::string::npos) last_lines_[line.substr(1, end - 1)] = line;
}

// Finds failed processes in lines that `launch` prints: "worker 1 exited with 1", "worker 1 was
// ended by signal 9 (SIGKILL) and has no restart left", "worker 1 exited with 1; restarting it (1
// of 2)", "worker 1 was ended by signal 9 (SIGKILL); the job goes on with 2 workers", "restart 1 of
// 2". The last line, "the job failed because ...", repeats one of them.
void RunLog::take_launch_line(std::string_view words) {
  if (words.starts_with("restart ")) return failures_.clear();
  if (words.starts_with("the ")) return;
  std::size_t at = std::string_view::npos;
  for (const char* how : {" exited with ", " was ended by signal "})
    at = std::min(at, words.find(how));
  if (at == std::string_view::npos || words.find("; restarting it") != std::string_view::npos) {
    return;
  }
  std::string_view how = words.substr(at + 1);
  how =
      how.substr(0, std::min(how.find(" and has no restart left"), how.find("; the job goes on")));
  failures_.push_back({std::string(words.substr(0, at)), std::string(how)});
}

bool RunLog::has_only_wanted_failures(const std::set<std::string>& killed) const {
  return !failures_.empty() &&
         std::ranges::all_of(failures_, [&](const Failure& end) { return end.is_wanted(killed); });
}

std::string RunLog::reason(const std::set<std::string>& killed) const {
  for (const Failure& end : failures_) {
    if (end.is_wanted(killed)) continue;
    // A role that the kernel ended has printed no reason.
    if (end.how.find(" by the kernel ") != std::string::npos) return end.role + " " + end.how;
    const auto last_line = last_lines_.find(end.role);
    return last_line == last_lines_.end() ? end.role + " " + end.how : last_line->second;
  }
  if (!failures_.empty()) {
    return failures_.front().role + " was killed by --kill, and the job ended with it";
  }
  for (const std::string& line : unfinished_) {
    if (!line.empty()) return line;
  }
  return last_line_;
}

}  // namespace syncopate::bench
