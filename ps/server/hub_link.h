// The control side of a server other than 0: its connection to server 0.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/coordinator/absence.h"
#include "ps/server/data_service.h"
#include "ps/server/server.h"
#include "ps/server/server_duties.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

// One thread only.
class HubLink {
 public:
  // stop: whether this server is asked to.
  HubLink(const ServerOptions& options, DataService& data, ServerDuties& duties,
          std::function<bool()> stop, std::function<void(const std::string&)> note);

  // Returns when the job is over. Throws PeerError when it has failed, or server 0 stays away.
  void run();

 private:
  std::string name() const;
  void greet();
  // Sent once server 0 has let us in on this connection: it takes who speaks before its Hello for
  // one that was given up.
  void tell(wire::MessageT message);
  void serve();
  std::chrono::milliseconds longest_absence() const;  // of server 0
  void round();
  void watch_time();

  const ServerOptions& options_;
  DataService& data_;
  ServerDuties& duties_;
  const std::function<bool()> stop_;
  const std::function<void(const std::string&)> note_;
  wire::Context context_;
  std::unique_ptr<wire::Socket> socket_;
  bool is_welcome_ = false;  // was, ever
  bool is_let_in_ = false;   // on this connection
  std::vector<wire::MessageT> untold_;
  Deadline next_heartbeat_;
  Deadline silent_until_;  // it is heard of again before this
  Absence absence_;        // of its connection, once there was one
};

}  // namespace syncopate::ps
