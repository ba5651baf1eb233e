#include "deploy/launch/role_group.h"

#include <fmt/format.h>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "deploy/launch/output_queue.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

// The number of deliveries of one signal after which the roles are killed. A batch system may send
// a warning signal and a final signal, once each. A user who presses Ctrl-C three times does not
// want to wait for a checkpoint.
constexpr int kSignalsThatKill = 3;
// The time that a late worker has to print its last line after the servers have ended.
constexpr std::chrono::seconds kLateWorkerTimeout(1);
// The time that the other tasks have to report a wrong command line, or a failure before training,
// after one task has reported it. All tasks were given the same flags, so the lines of the others
// would only hide the first report.
constexpr std::chrono::milliseconds kOtherReportsTimeout(1000);
// The limit for doublings of the back-off. More doublings would overflow, and the longest back-off
// is reached long before.
constexpr int kMostDoublings = 16;
// How often launch looks for a stopped role in the time after which it is given up. Launch counts
// the looks instead of the time, since launch may be stopped together with its roles.
constexpr int kLooksForStoppedRoles = 10;

using std::chrono::milliseconds;

std::string seconds(std::chrono::nanoseconds duration) {
  return fmt::format("{} s", std::chrono::ceil<std::chrono::seconds>(duration).count());
}

// Exit code 2 (wrong usage) is no failure that a restart could repair, because a restart would
// report it again. Exit code 75 means that the role was stopped on request.
bool is_failure(const LaunchedRole& role) {
  return worse_exit_code(kExitDone, role.exit_code()) == kExitFailed;
}

milliseconds back_off_before(int restarts, const LaunchRules& rules) {
  const int doublings = std::min(restarts, kMostDoublings);
  return std::min(rules.longest_back_off, rules.first_back_off * (1 << doublings));
}

std::string counted_workers(std::ptrdiff_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

bool is_worker(const LaunchedRole& role) { return role.is_worker(); }

}  // namespace

RoleGroup::RoleGroup(std::vector<RoleCommand> commands, const LaunchRules& rules, int restarts,
                     const LaunchOutput& output, StopSignal& stop)
    : rules_(rules), output_(output), stop_(stop), memory_kills_(rules.system_root) {
  if (rules.roles_meet) {
    rendezvous_.emplace();
    next_look_ = Deadline::after(milliseconds(0));
  }
  for (RoleCommand& command : commands) {
    if (rendezvous_) rendezvous_->share_with(command);
    roles_.emplace_back(std::move(command), restarts, output, stop.previous_mask());
    LaunchedRole& role = roles_.back();
    if (role.was_started()) guard_.add(role.process().pid());
    const bool may_restart_later = rule_of(role).restarts_alone && restarts < rules_.most_restarts;
    if (role.was_started() && !may_restart_later) role.release();
    if (may_restart_later) next_look_ = Deadline::after(milliseconds(0));
  }
}

int RoleGroup::run() {
  while (!std::all_of(roles_.begin(), roles_.end(),
                      [](const LaunchedRole& role) { return role.has_ended(); })) {
    wait_for_events();
    end_job_if_done();
    shorten_wait_for_late_workers();
    start_due_roles();
    kill_stopped_roles();
    advance_stage();
  }
  int worst = kExitDone;
  for (const LaunchedRole& role : roles_) worst = worse_exit_code(worst, role.exit_code());
  return worst;
}

bool RoleGroup::has_failed() const noexcept {
  const auto ended_badly = [&](const LaunchedRole& role) {
    return role.is_worker() && role.exit_code() != kExitDone && !rules_.workers.restarts_alone;
  };
  const auto ended_well = [](const LaunchedRole& role) {
    return role.is_worker() && role.exit_code() == kExitDone;
  };
  return stopped_by_failure_ || std::any_of(roles_.begin(), roles_.end(), ended_badly) ||
         std::none_of(roles_.begin(), roles_.end(), ended_well);
}

int RoleGroup::restarts() const noexcept {
  int most = 0;
  for (const LaunchedRole& role : roles_) most = std::max(most, role.restarts());
  return most;
}

const RoleRule& RoleGroup::rule_of(const LaunchedRole& role) const noexcept {
  return role.is_server() ? rules_.servers : rules_.workers;
}

bool RoleGroup::accepts_restart(const LaunchedRole& role) const noexcept {
  const auto is_lost = [&](const LaunchedRole& other) {
    return &other != &role && other.is_server() && other.has_ended();
  };
  return !asked_to_stop_ && stage_ == Stage::kRunning &&
         std::none_of(roles_.begin(), roles_.end(), is_lost);
}

bool RoleGroup::has_restart_left(const LaunchedRole& role) const noexcept {
  return rule_of(role).restarts_alone && role.restarts() < rules_.most_restarts;
}

bool RoleGroup::may_restart(const LaunchedRole& role) const noexcept {
  return has_restart_left(role) && is_failure(role) && accepts_restart(role);
}

std::string RoleGroup::conclusion() const {
  if (asked_to_stop_ || cause_.empty() || roles_.size() == 1) return "";
  if (!has_failed()) {
    return "the other workers have completed the job; the exit code is 1 because " + cause_;
  }
  if (is_cause_certain_) return "the job failed because " + cause_;
  return "the job failed: " + cause_ + "; it was the first role to end with an error";
}

bool RoleGroup::is_awaited(const LaunchedRole& role) noexcept {
  return rendezvous_ && !rendezvous_->is_over() && !role.starts_late() &&
         stage_ == Stage::kRunning && !asked_to_stop_;
}

void RoleGroup::set_cause(std::string cause, bool is_certain) {
  if (!cause_.empty() && (is_cause_certain_ || !is_certain)) return;
  cause_ = std::move(cause);
  is_cause_certain_ = is_certain;
}

void RoleGroup::wait_for_events() {
  memory_kills_.look();
  const bool is_out_blocked = is_blocked(output_.out_queue);
  const bool is_err_blocked = is_blocked(output_.err_queue);
  std::vector<pollfd> sources{{stop_.descriptor(), POLLIN, 0}};
  for (LaunchedRole& role : roles_) {
    if (!role.was_started()) continue;
    for (const int descriptor :
         {is_out_blocked ? -1 : role.out().descriptor(),
          is_err_blocked ? -1 : role.err().descriptor(), role.process().descriptor()}) {
      sources.push_back({descriptor, POLLIN, 0});
    }
  }
  for (const OutputQueue* queue : {output_.out_queue, output_.err_queue}) {
    if (is_blocked(queue)) sources.push_back({queue->blocked_descriptor(), POLLOUT, 0});
  }
  if (poll(sources.data(), sources.size(), poll_milliseconds()) < 0) {
    if (errno == EINTR) return;
    throw FileError(describe_errno("poll", "the roles", errno));
  }
  for (OutputQueue* queue : {output_.out_queue, output_.err_queue}) {
    if (is_blocked(queue)) queue->write_kept();
  }
  // Signals are read before the ends of roles, so that a role that was asked to stop is known to
  // have ended for that reason.
  pass_on_signals();
  const pollfd* source = &sources[1];
  for (LaunchedRole& role : roles_) {
    if (!role.was_started()) continue;
    if (source[0].revents != 0) role.out().forward();
    if (source[1].revents != 0) role.err().forward();
    if (source[2].revents != 0) conclude(role);
    source += 3;
  }
}

int RoleGroup::poll_milliseconds() const noexcept {
  int soonest = -1;
  const auto wait_for = [&](const std::optional<Deadline>& event) {
    if (!event) return;
    const int left = event->remaining_milliseconds();
    if (soonest < 0 || left < soonest) soonest = left;
  };
  wait_for(stage_end_);
  wait_for(next_look_);
  wait_for(memory_kills_.next_look());
  for (const LaunchedRole& role : roles_) wait_for(role.start_time());
  return soonest;
}

void RoleGroup::pass_on_signals() {
  while (const std::optional<int> signal = stop_.poll_number()) {
    asked_to_stop_ = true;
    int& times = times_received_.at(static_cast<std::size_t>(*signal));
    if (++times == kSignalsThatKill) {
      send_to_all(SIGKILL, "the same signal came three times");
      continue;
    }
    for (const LaunchedRole& role : roles_) {
      if (role.was_started()) role.process().ask_to_stop(*signal);
    }
  }
}

void RoleGroup::conclude(LaunchedRole& role) {
  const RoleEnding ending = role.conclude();
  guard_.remove(role.process().pid());
  if (ending.is_good()) {
    role.release();
  } else {
    const std::string reason = ending.signal == SIGKILL ? memory_kills_.reason() : "";
    evaluate_exit(role, role.name() + " " + describe(ending) + reason, ending.signal == 0);
  }
}

void RoleGroup::evaluate_exit(LaunchedRole& role, const std::string& what, bool has_exited) {
  if (ends_before_training_) return role.release();
  if (may_restart(role)) {
    log_(fmt::format("launch: {}; restarting it ({} of {})\n", what, role.restarts() + 1,
                     rules_.most_restarts));
    role.restart_after(back_off_before(role.restarts(), rules_));
    return;
  }
  if (started_too_late(role)) {
    log_("launch: " + role.name() + " came too late: the job was over\n");
    role.clear_exit_code();
    return role.release();
  }
  if (was_stopped_at_the_end(role)) {
    log_("launch: " + role.name() + " was stopped when the job was completed without it\n");
    role.clear_exit_code();
    return role.release();
  }
  if (ended_after_the_job(role)) {
    log_("launch: " + role.name() + " did not receive the message that the job was over\n");
    role.clear_exit_code();
    return role.release();
  }
  const RoleRule& rule = rule_of(role);
  const bool used_up = rule.restarts_alone && role.restarts() > 0 && is_failure(role);
  const bool failed = role.exit_code() != kExitStopped;
  const bool was_awaited = failed && is_awaited(role);
  const std::string line = what + (used_up ? " and has no restart left" : "");
  role.release();
  if (role.exit_code() == kExitUsage && role.restarts() == 0 && stage_ == Stage::kRunning) {
    log_("launch: " + line + "\n");
    return end_before_training("the command line is wrong",
                               std::min(rules_.timeout, kOtherReportsTimeout));
  }
  const bool ended_by_us = stage_ == Stage::kGrace || stage_ == Stage::kKilled;
  if (failed && !ended_by_us) {
    const std::string when = was_awaited ? " before the tasks had met" : "";
    set_cause(line + when, !has_exited);
  }
  if (was_awaited) {
    log_("launch: " + line + "\n");
    // A role that exits may have sent its reason to the others, who need a moment to show it.
    return end_before_training(
        "another had failed",
        role.signal() != 0 ? milliseconds(0) : std::min(rules_.timeout, kOtherReportsTimeout));
  }
  const std::ptrdiff_t left = std::count_if(
      roles_.begin(), roles_.end(),
      [](const LaunchedRole& other) { return other.is_worker() && !other.has_ended(); });
  // A worker that exits may have ended the job, or may end because another worker has: the servers
  // say whether the others go on.
  const bool goes_on = !has_exited && failed && role.is_worker() && left > 0 &&
                       stage_ == Stage::kRunning && rule.on_failure == FailureRule::kContinue &&
                       !rule.others_detect_failure && !asked_to_stop_;
  log_("launch: " + line +
       (goes_on ? fmt::format("; the job goes on with {}, which also {} its batches\n",
                              counted_workers(left), left == 1 ? "trains" : "train")
                : "\n"));
  if (failed && rule.on_failure == FailureRule::kStop && stage_ == Stage::kRunning) {
    stopped_by_failure_ = true;
    const bool end_by_themselves = rule.others_detect_failure;
    begin_ending("another had failed", end_by_themselves ? rules_.timeout : milliseconds(0));
  }
}

void RoleGroup::start_due_roles() {
  for (LaunchedRole& role : roles_) {
    if (!role.start_time() || !role.start_time()->passed()) continue;
    try {
      role.start();
      guard_.add(role.process().pid());
    } catch (const FileError& error) {
      evaluate_exit(role, role.name() + ": " + error.what(), /*has_exited=*/false);
    }
    if (!has_restart_left(role)) role.release();
  }
}

void RoleGroup::kill_stopped_roles() {
  if (!next_look_ || !next_look_->passed()) return;
  if (stage_ != Stage::kRunning) return next_look_.reset();
  next_look_ = Deadline::after(rules_.stopped_timeout / kLooksForStoppedRoles);
  for (LaunchedRole& role : roles_) {
    // The others do not wait for a worker that cannot be started again, but for a server they do.
    const bool restarts =
        has_restart_left(role) ||
        (role.is_server() && rules_.servers.restarts_alone && rules_.most_restarts > 0);
    const bool awaited = is_awaited(role);
    if ((!restarts && !awaited) || !role.is_running()) continue;
    if (role.count_stopped() < kLooksForStoppedRoles || asked_to_stop_) continue;
    log_(fmt::format("launch: SIGKILL to {}: it has been stopped for {}, and the others {}\n",
                     role.name(), seconds(rules_.stopped_timeout),
                     awaited ? "wait for it" : "have given it up"));
    if (!has_restart_left(role)) {
      set_cause(
          fmt::format("{} was stopped (SIGSTOP) for {}{}", role.name(),
                      seconds(rules_.stopped_timeout), awaited ? " before the tasks had met" : ""),
          true);
    }
    role.process().send(SIGKILL);
  }
}

bool RoleGroup::started_too_late(const LaunchedRole& role) const noexcept {
  const bool was_ended = stage_ == Stage::kGrace || stage_ == Stage::kKilled;
  return role.starts_late() && was_ended && !asked_to_stop_ && !stopped_by_failure_ &&
         have_servers_ended_well(roles_);
}

bool RoleGroup::was_stopped_at_the_end(const LaunchedRole& role) const noexcept {
  return role.is_worker() && role.was_continued() && !asked_to_stop_ && !stopped_by_failure_ &&
         have_servers_ended_well(roles_) && has_a_worker_ended_well(roles_);
}

bool RoleGroup::ended_after_the_job(const LaunchedRole& role) const noexcept {
  return role.is_server() && stage_ == Stage::kGrace && !asked_to_stop_ && !stopped_by_failure_ &&
         have_workers_ended_well(roles_) && ended_as_asked(role);
}

void RoleGroup::end_job_if_done() {
  for (LaunchedRole& role : roles_) {
    if (!role.start_time() || accepts_restart(role)) continue;
    log_("launch: " + role.name() + (role.was_started() ? " is not restarted" : " is not started") +
         ": the job is ending\n");
    if (role.is_server() && have_workers_ended_well(roles_)) role.clear_exit_code();
    role.release();
  }
  if (stage_ != Stage::kRunning) return;
  const bool has_workers = std::any_of(roles_.begin(), roles_.end(), is_worker);
  if (has_workers && !have_workers_left(roles_)) {
    begin_ending("the last worker had ended", rules_.timeout);
  } else if (have_servers_ended(roles_)) {
    // A stopped worker detects neither the end of the job nor a request to stop.
    begin_ending("the last server had ended", rules_.timeout);
  }
}

void RoleGroup::shorten_wait_for_late_workers() {
  if (stage_ != Stage::kWaiting || stage_end_->remaining() <= kLateWorkerTimeout) return;
  if (stopped_by_failure_ || !do_only_late_workers_run(roles_)) return;
  if (have_servers_ended_well(roles_)) stage_end_ = Deadline::after(kLateWorkerTimeout);
}

void RoleGroup::begin_ending(std::string because, milliseconds timeout) {
  stage_ = Stage::kWaiting;
  stage_end_ = Deadline::after(timeout);
  ending_because_ = std::move(because);
  continue_stopped_roles();
}

void RoleGroup::end_before_training(const std::string& because, milliseconds timeout) {
  ends_before_training_ = stopped_by_failure_ = true;
  begin_ending(because, timeout);
}

void RoleGroup::continue_stopped_roles() {
  for (LaunchedRole& role : roles_) {
    if (!role.is_running() || !role.process().is_stopped()) continue;
    if (ends_before_training_) continue;  // it is killed
    log_("launch: " + role.name() + " is stopped: SIGCONT, so that it can end\n");
    if (stopped_by_failure_) set_cause(role.name() + " was stopped (SIGSTOP)", true);
    role.continue_if_stopped();
  }
}

void RoleGroup::advance_stage() {
  if (!stage_end_ || !stage_end_->passed()) return;
  if (ends_before_training_) {
    for (const LaunchedRole& role : roles_) {
      if (role.is_running()) role.process().send(SIGKILL);
    }
    stage_ = Stage::kKilled;
    stage_end_.reset();
  } else if (stage_ == Stage::kWaiting) {
    const std::chrono::nanoseconds timeout = stage_end_->timeout();
    const bool waited = timeout.count() > 0;
    send_to_all(SIGTERM,
                (waited ? "it still ran " + seconds(timeout) + " after " : "") + ending_because_);
    stage_ = Stage::kGrace;
    stage_end_ = Deadline::after(rules_.grace);
  } else {
    send_to_all(SIGKILL, "it did not end within " + seconds(rules_.grace) + " of SIGTERM");
    stage_ = Stage::kKilled;
    stage_end_.reset();
  }
}

void RoleGroup::send_to_all(int signal, const std::string& why) {
  const std::string begin = "launch: SIG" + std::string(sigabbrev_np(signal)) + " to ";
  const std::string end = ": " + why + "\n";
  for (const LaunchedRole& role : roles_) {
    if (!role.is_running()) continue;
    log_(std::string(begin).append(role.name()).append(end));
    role.process().send(signal);
  }
}

}  // namespace syncopate
