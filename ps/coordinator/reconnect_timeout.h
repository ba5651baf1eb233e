// How long a task waits for a server that is disconnected, since the server may be restarted; and
// the advice that error messages about a lost task end with.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"
#include "ps/net/peer_silence.h"

namespace syncopate::ps {

// Returns the end of a message that names a lost task. Without checkpoints a job cannot be resumed.
inline std::string resume_advice(bool has_checkpoints) {
  return has_checkpoints ? "; see its output, and start the job again with --resume"
                         : "; see its output";
}
// Returns the advice that ends an error message about a job that cannot continue by itself.
inline std::string again_advice(bool has_checkpoints) {
  return has_checkpoints ? "; start the job again with --resume" : "; start the job again";
}

// A ReconnectTimeout is used by one thread only.
class ReconnectTimeout {
 public:
  // waiting: names the task that waits, "this worker". asked_to_stop: whether that task has been
  // asked to stop; may be empty. A task that is asked to stop waits for a shorter time, because the
  // server has probably been asked to stop as well and will not return.
  ReconnectTimeout(std::string waiting, std::chrono::milliseconds timeout,
                   std::function<bool()> asked_to_stop);

  // begin() has no effect if the timeout is running.
  void begin();
  void begin(const LostPeer& lost);  // the server is silent; the timeout includes its silence
  void end() noexcept { until_.reset(); }
  // Called when this process did not run for `suspended`: a running timeout starts again, unless
  // the task was asked to stop.
  void extend(std::chrono::nanoseconds suspended);

  // Returns the error message once the timeout has passed; nothing before. `server` names the
  // server that is waited for. The message says how long it was away, and for how long of that time
  // this task was not scheduled. Called periodically.
  std::optional<std::string> expired(const std::string& server, bool has_checkpoints);

 private:
  void restart();
  void shorten_if_asked_to_stop();

  std::string waiting_;
  std::chrono::milliseconds timeout_;
  std::function<bool()> asked_to_stop_;
  std::optional<Deadline> until_;  // set while the server is disconnected or silent
  Deadline::Clock::time_point begun_;
  LostPeer away_;  // the server's silence when the timeout began, and the delays since then
  bool is_silent_ = false;
  bool is_shortened_ = false;
  std::chrono::nanoseconds suspended_{0};
  // Set when this process continues after a suspension: if a connection to a server breaks before
  // this deadline, it broke during the suspension.
  std::optional<Deadline> resumed_until_;
  // The connection broke during a suspension so long that the server may have given this task up.
  bool broke_while_suspended_ = false;
};

}  // namespace syncopate::ps
