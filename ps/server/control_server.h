// The control side of server 0: the control socket for all tasks, the heartbeats, and the
// coordinator of the job. The other servers connect with ServerControlClient, workers with
// ps/client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/coordinator/coordinator.h"
#include "ps/server/control_socket.h"
#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/server_duties.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

// The control side of server 0. Used by one thread only.
class ControlServer {
 public:
  ControlServer(ServerOptions& options, DataService& data, ServerDuties& duties,
                const std::function<bool()>& stop, std::function<void(const std::string&)> note);

  // Serves the job; returns when the job is over. Throws PeerError when the job has failed.
  void run();

  // Return counts for the summary of the server. stranger_messages() counts the dropped messages
  // that came from no task of this job. foreign_messages() counts the dropped messages without a
  // valid header. callers_without_greeting() counts the connections that ended without a greeting
  // of this job.
  std::int64_t stranger_messages() const noexcept { return stranger_messages_; }
  std::int64_t foreign_messages() const { return socket_->foreign_messages(); }
  std::int64_t callers_without_greeting() const { return socket_->callers_without_greeting(); }

 private:
  // The control connection of a registered task.
  struct Connection {
    std::string peer;  // routing id of the connection
    std::uint32_t incarnation = 0;
    std::optional<Deadline> ready_by;  // set while a worker is admitted but not ready
    std::string host;
    std::int64_t pid = 0;
  };

  void serve();
  void run_once();
  void on_message(wire::Received& message);
  void on_hello(const std::string& peer, const wire::HelloT& hello);
  // Refuses the previous connection of a task, because another process has taken the task's place.
  void refuse_replaced(const std::string& peer, const std::string& name,
                       const wire::HelloT& new_task);
  void disconnect(const TaskId& task);
  // Reports the ended steps of shard 0 to the coordinator.
  void report_ended_steps();
  // Passes messages between the coordinator and this server's ServerDuties, and sends messages to
  // other tasks, until no message is left.
  void exchange_messages();
  void send(const Outgoing& outgoing);
  void check_deadlines();
  // Reports to the coordinator the tasks that are lost or take too long to become ready.
  void check_connections();
  // Restarts the timeouts of workers that are not ready yet. Called when the control thread did not
  // run for a while.
  void extend_deadlines();
  // Sends the final message, which says that the job is over or has failed, to every task,
  // repeatedly, until the task's connection has ended. Called after the job's end.
  void send_final_messages();
  wire::MessageT final_message() const;
  void on_final_message(const wire::Received& message);
  std::string describe(const TaskId& task, const Connection& connection) const;

  ServerOptions& options_;
  DataService& data_;
  ServerDuties& duties_;
  const std::function<void(const std::string&)> note_;
  ControlSocket socket_;
  Coordinator coordinator_;
  std::map<TaskId, Connection> connections_;
  std::map<std::string, TaskId> tasks_;  // tasks by routing id
  // Routing ids of the connections of lost workers. The final message (final_message()) is sent to
  // these workers too, because a suspended worker reads its messages when it continues.
  std::set<std::string> lost_workers_;
  // The refusals of processes that were replaced by another process of the same task, by routing id
  // of the connection. A replaced process may have sent one more Hello, with its declaration; this
  // Hello must not replace the new process.
  std::map<std::string, wire::RefusedT> replaced_;
  // Routing ids of tasks that were asked for their declaration and are not registered yet. Such
  // tasks already send heartbeats.
  std::set<std::string> undeclared_;
  std::map<std::string, wire::MessageT> final_messages_;  // messages to send, by routing id
  std::int64_t stranger_messages_ = 0;
  Deadline rendezvous_ends_;
  std::optional<Deadline> reconnect_by_;  // set when the job was restored
  std::optional<Deadline> next_snapshot_;
  std::optional<Deadline> missing_until_;  // set while the job needs a missing task
};

}  // namespace syncopate::ps
