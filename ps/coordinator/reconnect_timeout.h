// The time that a task waits for a disconnected server, which may be restarted; and the advice at
// the end of error messages about a lost task.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"
#include "ps/net/peer_silence.h"

namespace syncopate::ps {

// Returns the advice at the end of a message that names a lost task. The advice mentions --resume
// only if there are checkpoints.
inline std::string resume_advice(bool has_checkpoints) {
  return has_checkpoints ? "; see its output, and start the job again with --resume"
                         : "; see its output";
}
// Returns the advice that ends an error message about a job that cannot continue by itself.
inline std::string again_advice(bool has_checkpoints) {
  return has_checkpoints ? "; start the job again with --resume" : "; start the job again";
}

// The timeout of one disconnected server. Used by one thread only.
class ReconnectTimeout {
 public:
  // `waiting` names the task that waits, such as "this worker". `asked_to_stop` returns whether
  // this task was asked to stop; it may be empty. A task that was asked to stop waits for less than
  // `timeout`, because the server was probably asked to stop as well and will not return.
  ReconnectTimeout(std::string waiting, std::chrono::milliseconds timeout,
                   std::function<bool()> asked_to_stop);

  // Starts the timeout. begin() has no effect if the timeout is running.
  void begin();
  void begin(const LostPeer& lost);  // for a silent server; the timeout includes the silence so far
  void end() noexcept { until_.reset(); }
  // Starts a running timeout again from the beginning, unless the task was asked to stop. Called
  // when this process did not run for the time `suspended`.
  void extend(std::chrono::nanoseconds suspended);

  // Returns the error message once the timeout has passed, and nullopt before. `server` names the
  // missing server. The message says how long the server was away, and for how long of that time
  // this task was not scheduled. Must be called periodically.
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
  // Set when this process continues after a suspension. A connection to a server that breaks before
  // this deadline is taken to have broken during the suspension.
  std::optional<Deadline> resumed_until_;
  // True if the connection broke during a suspension that was so long that the server may have
  // taken this task for lost.
  bool broke_while_suspended_ = false;
};

}  // namespace syncopate::ps
