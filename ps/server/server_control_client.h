// The control side of a server other than 0: its connection to the ControlServer of server 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/server/control_socket.h"
#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/server_duties.h"

namespace syncopate::ps {

// The control side of a server other than 0. Used by one thread only.
class ServerControlClient {
 public:
  // `stop` and `note`: see run_server(). All arguments must outlive this object.
  ServerControlClient(ServerOptions& options, DataService& data, ServerDuties& duties,
                      const std::function<bool()>& stop,
                      const std::function<void(const std::string&)>& note);

  // Serves the job; returns when it is over. Throws PeerError if the job has failed, or server 0
  // does not reconnect in time.
  void run();

 private:
  std::string name() const;  // names server 0 in messages
  void send_hello();
  // Sends the message once server 0 has accepted this connection. Before that, server 0 would take
  // the sender for a server that was lost.
  void send(wire::MessageT message);
  void serve();
  std::chrono::milliseconds server_0_timeout() const;
  void run_once();
  void check_deadlines();

  const ServerOptions& options_;
  DataService& data_;
  ServerDuties& duties_;
  ControlSocket socket_;
  bool is_registered_ = false;          // server 0 has sent a Welcome, on any connection
  bool is_accepted_ = false;            // server 0 has sent a Welcome on this connection
  std::vector<wire::MessageT> unsent_;  // messages to send when the connection is accepted
  Deadline register_by_;
  ReconnectTimeout reconnect_;  // runs while the connection is broken
};

}  // namespace syncopate::ps
