// Accepts connections on a listening socket and reads the greeting (ps/net/greeting.h) of each. Any
// program may connect to such a socket, so connections that send nothing, or something else, must
// neither keep the job's own connections from being heard nor end this task.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ps/net/caller_listener.h"
#include "ps/net/connection.h"
#include "ps/net/greeting.h"

namespace syncopate {

// The accepted connections that have not completed their greeting. One thread only.
class PendingConnections {
 public:
  // A connection after its greeting was received. If it is of this job, it has received this
  // listener's proof.
  struct Arrival {
    Connection connection;
    Frame frame;  // without the seal
    bool is_of_job = false;
  };

  // `nonce`: of the job. A connection is closed with a warning when it sends anything but a call
  // and a greeting of at most max_message_bytes bytes, or when more than greeting_timeout passes
  // between the two. When there is no room for new connections, those that have not completed
  // their greeting for longer than silence_timeout are closed: a task greets when it has connected.
  PendingConnections(Listener listener, std::string nonce, std::uint32_t max_message_bytes,
                     std::chrono::milliseconds silence_timeout = std::chrono::seconds(1),
                     std::chrono::milliseconds greeting_timeout = std::chrono::seconds(10));

  std::uint16_t port() const { return listener_.port(); }

  // For a poll(2) loop: adds the descriptors to watch, and shortens the time to wait.
  void add_to(std::vector<pollfd>& sockets) const;
  int poll_milliseconds(const Deadline& deadline) const;

  // Returns the connections that sent their greeting since the last call. Never blocks.
  std::vector<Arrival> receive();
  // Logs, up to 20 times, that the connection of `peer` was rejected because it does not belong to
  // this job. `why` may begin with the name of the peer.
  void warn_rejected(const std::string& peer, const std::string& why);

 private:
  struct Silent {
    Connection connection;
    Deadline deadline;
    std::optional<GreetingListener> greeting;  // since it has called
    std::optional<Deadline> greeting_by;       // since it has called
  };

  void accept();
  // Continues the greeting of a connection. Returns it once its greeting has arrived.
  std::optional<Arrival> greet(Silent& silent);
  void close_half_greeted();
  void close_silent();
  bool is_full() const noexcept { return listener_.is_full(silent_.size()); }

  CallerListener listener_;
  std::string nonce_;
  std::uint32_t max_message_bytes_;
  std::chrono::milliseconds silence_timeout_;
  std::chrono::milliseconds greeting_timeout_;
  std::vector<Silent> silent_;  // connections without a message, in the order of arrival
  int rejected_ = 0;            // number of warn_rejected() calls
};

}  // namespace syncopate
