// Accepts connections on a listening socket and reads the greeting (ps/net/greeting.h) of each
// connection. Any program may connect to such a socket. So connections that send nothing, or no
// greeting, must not block the job's own connections, and must not end this task.
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
  // A connection that has sent its greeting. If is_of_job, the listener's proof has been sent in
  // answer.
  struct Arrival {
    Connection connection;
    Frame frame;  // the greeting, without its seal
    bool is_of_job = false;
  };

  // `nonce` is the nonce of the job. A connection must send a call, and within greeting_timeout
  // after the call a greeting of at most max_message_bytes bytes. Otherwise the connection is
  // closed with a warning. If there is no room for new connections, connections without a complete
  // greeting are closed after silence_timeout, since a task greets as soon as it has connected.
  PendingConnections(Listener listener, std::string nonce, std::uint32_t max_message_bytes,
                     std::chrono::milliseconds silence_timeout = std::chrono::seconds(1),
                     std::chrono::milliseconds greeting_timeout = std::chrono::seconds(10));

  std::uint16_t port() const { return listener_.port(); }

  // For a poll(2) loop: add_to() adds the descriptors to watch. poll_milliseconds() returns how
  // long poll() may wait, at most until the deadline.
  void add_to(std::vector<pollfd>& sockets) const;
  int poll_milliseconds(const Deadline& deadline) const;

  // Returns the connections that have sent their greeting since the last call. Never blocks.
  std::vector<Arrival> receive();
  // Logs that the connection of `peer` was rejected because it does not belong to this job; only
  // the first 20 calls log. `why` may begin with the name of the peer.
  void warn_rejected(const std::string& peer, const std::string& why);

 private:
  struct Silent {
    Connection connection;
    Deadline deadline;
    std::optional<GreetingListener> greeting;  // set once the call has arrived
    std::optional<Deadline> greeting_by;       // set once the call has arrived
  };

  void accept();
  // Continues the greeting of a connection. Returns the connection once its greeting has arrived.
  std::optional<Arrival> greet(Silent& silent);
  void close_half_greeted();
  void close_silent();
  bool is_full() const noexcept { return listener_.is_full(silent_.size()); }

  CallerListener listener_;
  std::string nonce_;
  std::uint32_t max_message_bytes_;
  std::chrono::milliseconds silence_timeout_;
  std::chrono::milliseconds greeting_timeout_;
  std::vector<Silent> silent_;  // connections without a complete greeting, in the order of arrival
  int rejected_ = 0;            // number of warn_rejected() calls
};

}  // namespace syncopate
