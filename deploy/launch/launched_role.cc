#include "deploy/launch/launched_role.h"

#include <utility>

#include "deploy/launch/exit_code.h"

namespace syncopate {

LaunchedRole::LaunchedRole(RoleCommand command, int restarts, LaunchOutput output,
                           const sigset_t& signal_mask)
    : command_(std::move(command)),
      restarts_(restarts),
      output_(std::move(output)),
      signal_mask_(&signal_mask) {
  start();
}

void LaunchedRole::start() {
  process_ = std::make_unique<RoleProcess>(command_, *signal_mask_);
  out_.emplace(process_->take_out(), name(), output_.out);
  err_.emplace(process_->take_err(), name(), output_.err);
}

RoleEnding LaunchedRole::conclude() {
  const RoleEnding ending = process_->reap();
  out_->finish();
  err_->finish();
  exit_code_ = ending.signal == 0 ? ending.exit_code : kExitFailed;
  return ending;
}

void LaunchedRole::restart_after(std::chrono::milliseconds back_off) {
  restart_time_ = Deadline::after(back_off);
}

void LaunchedRole::restart() {
  restart_time_.reset();
  ++restarts_;
  start();
}

void LaunchedRole::let_go() noexcept {
  restart_time_.reset();
  command_.inherited.reset();
}

}  // namespace syncopate
