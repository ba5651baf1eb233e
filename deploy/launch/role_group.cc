#include "deploy/launch/role_group.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "deploy/launch/exit_code.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// A batch system may send a warning and then the end, once each; somebody at a keyboard who sends
// the same signal a third time does not want to wait for a checkpoint.
constexpr int kTimesThatKill = 3;

std::string seconds(std::chrono::milliseconds duration) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

RoleGroup::RoleGroup(std::vector<RoleCommand> commands, LaunchRules rules,
                     const LaunchOutput& output, StopSignal& stop)
    : rules_(rules), say_(output.err), stop_(stop) {
  for (RoleCommand& command : commands) {
    auto process = std::make_unique<RoleProcess>(std::move(command), stop.previous_mask());
    RoleOutput out(process->take_out(), process->name(), output.out);
    RoleOutput err(process->take_err(), process->name(), output.err);
    tasks_.push_back({std::move(process), std::move(out), std::move(err)});
  }
}

int RoleGroup::run() {
  while (has_running()) {
    wait_for_events();
    pass_on_signals();
    press_on();
  }
  return worst_exit_code_;
}

bool RoleGroup::has_running() const noexcept {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const Task& task) { return task.process->is_running(); });
}

void RoleGroup::wait_for_events() {
  std::vector<pollfd> sources{{stop_.descriptor(), POLLIN, 0}};
  for (const Task& task : tasks_) {
    for (const int descriptor :
         {task.out.descriptor(), task.err.descriptor(), task.process->descriptor()}) {
      sources.push_back({descriptor, POLLIN, 0});
    }
  }
  const int timeout = stage_end_ ? stage_end_->remaining_milliseconds() : -1;
  if (poll(sources.data(), sources.size(), timeout) < 0) {
    if (errno == EINTR) return;
    throw FileError(describe_errno("poll", "the roles", errno));
  }
  const pollfd* source = &sources[1];
  for (Task& task : tasks_) {
    if (source[0].revents != 0) task.out.forward();
    if (source[1].revents != 0) task.err.forward();
    if (source[2].revents != 0) conclude(task);
    source += 3;
  }
}

void RoleGroup::pass_on_signals() {
  while (const std::optional<int> signal = stop_.poll_number()) {
    asked_to_stop_ = true;
    int& times = times_received_.at(static_cast<std::size_t>(*signal));
    if (++times == kTimesThatKill) {
      send_to_all(SIGKILL, "the same signal came three times");
      continue;
    }
    for (const Task& task : tasks_) task.process->ask_to_stop(*signal);
  }
}

void RoleGroup::conclude(Task& task) {
  const RoleEnding ending = task.process->reap();
  task.out.finish();
  task.err.finish();
  if (ending.is_good()) return;
  say_("launch: " + task.process->name() + " " + describe(ending) + "\n");
  const int exit_code = ending.signal == 0 ? ending.exit_code : kExitFailed;
  worst_exit_code_ = worse_exit_code(worst_exit_code_, exit_code);
  const bool failed = exit_code != kExitStopped;
  if (failed && rules_.on_failure == FailureRule::kStop && stage_ == Stage::kRunning) {
    stage_ = Stage::kPatience;
    stage_end_ = Deadline::after(rules_.patience);
    wake_stopped();
  }
}

void RoleGroup::wake_stopped() {
  for (const Task& task : tasks_) {
    if (!task.process->is_stopped()) continue;
    say_("launch: " + task.process->name() + " is stopped: SIGCONT, so that it can end\n");
    task.process->send(SIGCONT);
  }
}

void RoleGroup::press_on() {
  if (!stage_end_ || !stage_end_->passed()) return;
  if (stage_ == Stage::kPatience) {
    send_to_all(SIGTERM, "it still ran " + seconds(rules_.patience) + " after another had failed");
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
  for (const Task& task : tasks_) {
    if (!task.process->is_running()) continue;
    say_(std::string(begin).append(task.process->name()).append(end));
    task.process->send(signal);
  }
}

}  // namespace syncopate
