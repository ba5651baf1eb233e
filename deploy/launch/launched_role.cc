#include "deploy/launch/launched_role.h"

#include <utility>

#include "worker/run/exit_code.h"

namespace syncopate {

LaunchedRole::LaunchedRole(RoleCommand command, int restarts, LaunchOutput output,
                           const sigset_t& signal_mask)
    : command_(std::move(command)),
      restarts_(restarts),
      output_(std::move(output)),
      signal_mask_(&signal_mask) {
  if (comes_late()) {
    start_time_ = Deadline::after(command_.start_after);
  } else {
    start_process();
  }
}

void LaunchedRole::start_process() {
  process_ = std::make_unique<RoleProcess>(command_, *signal_mask_);
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
  if (has_come()) {
    ++restarts_;
  } else {
    exit_code_ = kExitFailed;  // should that be all there is of it
  }
  start_process();
}

void LaunchedRole::wake() {
  was_woken_ = true;
  process_->send(SIGCONT);
}

void LaunchedRole::let_go() noexcept {
  start_time_.reset();
  command_.inherited.reset();
}

}  // namespace syncopate
