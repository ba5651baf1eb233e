// The socket of a server's control thread, and the timing of the thread's loop. Server 0
// (ControlServer) and the other servers (ServerControlClient) use the same code.
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

// StopTimeout limits how long a server that was asked to stop waits for the end of its job. Usually
// the workers were asked to stop as well; they end after their step and a checkpoint, and need the
// servers until then. Used by one thread only. The constructor's arguments must outlive it.
class StopTimeout {
 public:
  // `stop` and `note`: see run_server().
  StopTimeout(const std::function<bool()>& stop,
              const std::function<void(const std::string&)>& note)
      : stop_(stop), note_(note) {}

  // Throws PeerError if the server was asked to stop and must not wait any longer: because the job
  // has not begun (`has_job` is false), no worker is left (`has_workers` is false), or the timeout
  // has passed. Must be called periodically.
  void check(bool has_job, bool has_workers);

 private:
  const std::function<bool()>& stop_;
  const std::function<void(const std::string&)>& note_;
  std::optional<Deadline> ends_;  // set once the server was asked to stop
};

// The control socket of one server. Used by the control thread only. The constructor's arguments
// must outlive it.
class ControlSocket {
 public:
  // On server 0, listens at the rendezvous, or takes options.listening if it is not empty. On any
  // other server, connects to the rendezvous. `stop` and `note`: see run_server().
  ControlSocket(ServerOptions& options, const DataService& data, const ServerDuties& duties,
                const std::function<bool()>& stop,
                const std::function<void(const std::string&)>& note);

  wire::HeartbeatSocket* operator->() noexcept { return &*socket_; }
  const wire::HeartbeatSocket* operator->() const noexcept { return &*socket_; }

  // Waits for a short time, or until a message arrives, ServerDuties has a reply, or a step has
  // ended on this server's shard. Returns the time since the previous call if it was so long that
  // this process must have been suspended or starved; otherwise zero.
  std::chrono::nanoseconds wait();
  // Waits for a short time, or until a message arrives on the socket. Unlike wait(), this function
  // does not return early for replies and ended steps.
  void wait_for_messages() const;
  // Returns whether a tenth of the peer timeout has passed since the call last returned true.
  // Server 0 then collects the job's status.
  bool is_status_due();
  // Sets the step that heartbeats report.
  void set_step(std::int64_t step) noexcept { step_ = step; }
  // Calls StopTimeout::check(). Must be called in every pass of the control loop.
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
  Deadline next_steps_;  // the control thread does not check for ended steps before this time
  Deadline::Clock::time_point last_wait_ = Deadline::Clock::now();
};

}  // namespace syncopate::ps
