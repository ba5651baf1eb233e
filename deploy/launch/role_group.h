// The roles of one job, started together and watched to their end: output and stop signals are
// passed on, and a failure of one ends the others if the rule says so. Started once; a restart is a
// new group.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "deploy/launch/launch_rules.h"
#include "deploy/launch/role_output.h"
#include "deploy/launch/role_process.h"
#include "models/base/deadline.h"
#include "worker/stop_signal.h"

namespace syncopate {

// Both take whole lines.
struct LaunchOutput {
  WriteLines out;
  WriteLines err;  // the launcher's own lines too
};

// One thread only, and the only one of the process: it forks. `stop` outlives it.
class RoleGroup {
 public:
  // Starts them, in this order. Throws FileError when one cannot be started; those that run are
  // killed.
  RoleGroup(std::vector<RoleCommand> commands, LaunchRules rules, const LaunchOutput& output,
            StopSignal& stop);

  // Returns when all have ended: the worst exit code (exit_code.h). Has no deadline:
  // training lasts as long as it lasts.
  int run();
  // A signal asked for it: what ends then does not end by failure.
  bool was_asked_to_stop() const noexcept { return asked_to_stop_; }

 private:
  struct Task {
    std::unique_ptr<RoleProcess> process;
    RoleOutput out;
    RoleOutput err;
  };
  enum class Stage : std::uint8_t { kRunning, kPatience, kGrace, kKilled };

  bool has_running() const noexcept;
  void wait_for_events();
  void pass_on_signals();
  void conclude(Task& task);
  // A failure has ended the job, and one that is stopped cannot notice.
  void wake_stopped();
  // The next stage after a failure, once its time has come.
  void press_on();
  void send_to_all(int signal, const std::string& why);

  LaunchRules rules_;
  WriteLines say_;
  StopSignal& stop_;
  std::vector<Task> tasks_;
  Stage stage_ = Stage::kRunning;
  std::optional<Deadline> stage_end_;
  std::array<int, 65> times_received_{};  // by signal
  bool asked_to_stop_ = false;
  int worst_exit_code_ = 0;
};

}  // namespace syncopate
