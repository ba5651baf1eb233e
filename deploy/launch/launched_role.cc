#include "deploy/launch/launched_role.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

// The largest number of portions of output read after the role has ended. It exceeds what a pipe
// can hold (1 MiB), and it bounds the wait for a descendant that goes on writing.
constexpr int kMostLastPortions = 64;

}  // namespace

LaunchedRole::LaunchedRole(RoleCommand command, int restarts, LaunchOutput output,
                           const sigset_t& signal_mask)
    : command_(std::move(command)),
      restarts_(restarts),
      output_(std::move(output)),
      signal_mask_(&signal_mask) {
  if (starts_late()) {
    start_time_ = Deadline::after(command_.start_after);
  } else {
    start_process();
  }
}

void LaunchedRole::start_process() {
  process_ = std::make_unique<RoleProcess>(command_, *signal_mask_);
  times_stopped_ = 0;
  out_.emplace(process_->take_out(), name(), output_.out);
  err_.emplace(process_->take_err(), name(), output_.err);
}

RoleEnding LaunchedRole::conclude() {
  const RoleEnding ending = process_->reap();
  out_->finish();
  err_->finish();
  signal_ = ending.signal;
  exit_code_ = ending.signal == 0 ? ending.exit_code : kExitFailed;
  return ending;
}

void LaunchedRole::restart_after(std::chrono::milliseconds back_off) {
  start_time_ = Deadline::after(back_off);
}

void LaunchedRole::start() {
  start_time_.reset();
  if (was_started()) {
    ++restarts_;
  } else {
    exit_code_ = kExitFailed;  // remains if start_process() throws
  }
  start_process();
}

int LaunchedRole::count_stopped() noexcept {
  times_stopped_ = process_->is_stopped() ? times_stopped_ + 1 : 0;
  return times_stopped_;
}

void LaunchedRole::continue_if_stopped() {
  was_continued_ = true;
  process_->send(SIGCONT);
}

void LaunchedRole::release() noexcept {
  start_time_.reset();
  command_.inherited.reset();
}

bool ended_as_asked(const LaunchedRole& role) {
  if (role.signal() != 0) return role.signal() == SIGTERM;
  return role.exit_code() == kExitFailed;
}

bool have_workers_left(const std::vector<LaunchedRole>& roles) {
  return std::any_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return role.is_worker() && !role.has_ended();
  });
}

bool have_workers_ended_well(const std::vector<LaunchedRole>& roles) {
  bool has_workers = false;
  for (const LaunchedRole& role : roles) {
    if (!role.is_worker()) continue;
    if (!role.has_ended() || role.exit_code() != kExitDone) return false;
    has_workers = true;
  }
  return has_workers;
}

bool has_a_worker_ended_well(const std::vector<LaunchedRole>& roles) {
  return std::any_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return role.is_worker() && role.was_started() && role.has_ended() &&
           role.exit_code() == kExitDone;
  });
}

bool have_servers_ended(const std::vector<LaunchedRole>& roles) {
  bool has_servers = false;
  for (const LaunchedRole& role : roles) {
    if (!role.is_server()) continue;
    if (!role.has_ended()) return false;
    has_servers = true;
  }
  return has_servers;
}

bool have_servers_ended_well(const std::vector<LaunchedRole>& roles) {
  return have_servers_ended(roles) &&
         std::all_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
           return !role.is_server() || role.exit_code() == kExitDone;
         });
}

bool do_only_late_workers_run(const std::vector<LaunchedRole>& roles) {
  return std::all_of(roles.begin(), roles.end(), [](const LaunchedRole& role) {
    return !role.is_running() || role.starts_late();
  });
}

bool RoleOutput::forward() {
  std::array<char, 64 << 10> bytes;  // NOLINT(*-member-init): filled by read
  const ssize_t count = pipe_ ? read(pipe_.get(), bytes.data(), bytes.size()) : 0;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    pipe_.reset();
    return false;
  }
  const std::string lines = lines_.add({bytes.data(), static_cast<std::size_t>(count)});
  if (!lines.empty()) write_(lines);
  return true;
}

void RoleOutput::finish() {
  for (int portion = 0; portion < kMostLastPortions && forward(); ++portion) {
  }
  pipe_.reset();
  const std::string rest = lines_.finish();
  if (!rest.empty()) write_(rest);
}

std::string OutputPrefixer::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::string_view room = bytes.substr(0, kLongestLine - unfinished_.size());
    const std::size_t newline = room.find('\n');
    const bool ends = newline != std::string_view::npos;
    const std::string_view part = room.substr(0, newline);
    unfinished_ += part;
    bytes.remove_prefix(part.size() + (ends ? 1 : 0));
    if (!ends && unfinished_.size() < kLongestLine) break;
    lines += prefix_ + unfinished_ + '\n';
    unfinished_.clear();
  }
  return lines;
}

std::string OutputPrefixer::finish() {
  if (unfinished_.empty()) return "";
  std::string line = prefix_ + unfinished_ + '\n';
  unfinished_.clear();
  return line;
}

}  // namespace syncopate
