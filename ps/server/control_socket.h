// The socket of a server's control thread and the timing of the loop around it, which are equal on
// server 0 (ControlServer) and on the other servers (ServerControlClient).
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/server_duties.h"
#include "ps/wire/heartbeat_socket.h"

namespace syncopate::ps {

// StopTimeout is the time that a server which is asked to stop waits for its job to end. Usually
// the workers are asked to stop as well: they end after their step and a checkpoint, and need the
// servers until then. Used by one thread only. The constructor's arguments outlive it.
class StopTimeout {
 public:
  // `stop` and `note` are those of run_server().
  StopTimeout(const std::function<bool()>& stop,
              const std::function<void(const std::string&)>& note)
      : stop_(stop), note_(note) {}

  // Checks the stop timeout; called periodically. Throws PeerError once the server has to end: at
  // once if the job has not begun or no worker is left, otherwise when the timeout has passed.
  void check(bool has_job, bool has_workers);

 private:
  const std::function<bool()>& stop_;
  const std::function<void(const std::string&)>& note_;
  std::optional<Deadline> ends_;  // set once the server was asked to stop
};

// The control socket of one server. Used by the control thread only. The arguments outlive it.
class ControlSocket {
 public:
  // Server 0 listens at the rendezvous, or on options.listening, which is moved from. Any other
  // server connects to the rendezvous. `stop` and `note`: see run_server().
  ControlSocket(ServerOptions& options, const DataService& data, const ServerDuties& duties,
                const std::function<bool()>& stop,
                const std::function<void(const std::string&)>& note);

  wire::HeartbeatSocket* operator->() noexcept { return &*socket_; }
  const wire::HeartbeatSocket* operator->() const noexcept { return &*socket_; }

  // Waits, for a short time, until a message arrives, the duties have a reply, or a step has ended.
  // Returns the time since the last call if it is so long that this process was suspended or
  // starved, otherwise zero.
  std::chrono::nanoseconds wait();
  // Waits briefly for a message on the socket; replies and ended steps do not end the wait.
  void wait_for_messages() const;
  // Returns true once in every tenth of the peer timeout: the job's status is collected then.
  bool is_status_due();
  void set_step(std::int64_t step) noexcept { step_ = step; }  // the step that heartbeats carry
  // Checks the stop timeout (StopTimeout::check()); called in every pass of the control loop.
  void check_stop(bool has_job, bool has_workers) { stop_timeout_.check(has_job, has_workers); }

 private:
  // Calls poll(2) for the descriptors in `polled` and the socket's descriptors.
  void poll_with_socket(std::vector<pollfd>& polled, std::chrono::milliseconds timeout) const;

  const DataService& data_;
  const ServerDuties& duties_;
  wire::Context context_;
  std::atomic<std::int64_t> step_{0};
  std::optional<wire::HeartbeatSocket> socket_;
  StopTimeout stop_timeout_;
  std::chrono::nanoseconds status_interval_;
  Deadline next_status_;
  Deadline next_steps_;  // the control thread does not look for ended steps before this
  Deadline::Clock::time_point last_wait_ = Deadline::Clock::now();
};

}  // namespace syncopate::ps
