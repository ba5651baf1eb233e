// How long a task waits for a server that is disconnected, since the server may be restarted; and
// the advice that error messages about a lost task end with.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"

namespace syncopate::ps {

// The end of a message that names a lost task. Without checkpoints a job cannot be resumed.
inline std::string resume_advice(bool has_checkpoints) {
  return has_checkpoints ? "; see its output, and start the job again with --resume"
                         : "; see its output";
}
// The end of a message about a job that cannot continue by itself.
inline std::string again_advice(bool has_checkpoints) {
  return has_checkpoints ? "; start the job again with --resume" : "; start the job again";
}

// Used by one thread only.
class ReconnectTimeout {
 public:
  // waiting: names the task that waits, "this worker". asked_to_stop: whether that task has been
  // asked to stop; may be empty. A task that is asked to stop waits for a shorter time, because the
  // server has probably been asked to stop as well and will not return.
  ReconnectTimeout(std::string waiting, std::chrono::milliseconds timeout,
                   std::function<bool()> asked_to_stop);

  void begin();  // does nothing if the timeout is already running
  void end() noexcept { until_.reset(); }
  // This process did not run for that long: a timeout that is running starts again.
  void extend(std::chrono::nanoseconds suspended);

  // The error message once the timeout has passed; nothing before. `server` names what is waited
  // for. Called periodically.
  std::optional<std::string> expired(const std::string& server, bool has_checkpoints);

 private:
  void shorten_if_asked_to_stop();

  std::string waiting_;
  std::chrono::milliseconds timeout_;
  std::function<bool()> asked_to_stop_;
  std::optional<Deadline> until_;  // set while the server is disconnected
  bool is_shortened_ = false;
  std::chrono::nanoseconds suspended_{0};
  // A connection that breaks before this deadline broke while this process was suspended.
  std::optional<Deadline> resumed_until_;
  // It broke so, and the suspension was long enough for the server to give this task up.
  bool broke_while_suspended_ = false;
};

}  // namespace syncopate::ps
