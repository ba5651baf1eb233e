// A worker's control connection to shard 0. The connection carries the messages to and from the
// coordinator: about joining and leaving the job, heartbeats, leases of batches, and assignments.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "ps/client/client_state.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/wire/heartbeat_socket.h"

namespace syncopate::ps {

// The control connection of a worker. Used by the I/O thread only.
class ControlLink {
 public:
  ControlLink(ClientState& state, const ClientOptions& options);

  // Sends the message to shard 0 once shard 0 has accepted this worker.
  void send(wire::MessageT message);
  // The received messages that IoThread must handle. IoThread handles them in the order of the
  // members of Changes.
  struct Changes {
    std::optional<std::uint64_t> rolled_back;  // the number of the snapshot rolled back to
    std::optional<std::vector<wire::ServerAddressT>> addresses;
    std::optional<wire::AssignmentT> assignment;
    std::optional<RunPosition> start;
    bool is_welcome_again = false;  // after a reconnect: shard 0 may have lost earlier messages
  };
  // Receives messages of shard 0 and link events, and flushes the socket.
  Changes process_events();
  // Fails the client when shard 0 is lost.
  void check_timeouts();
  // Restarts the reconnect timeout, if it is running. Called when the I/O thread did not run for
  // the time `suspended`.
  void extend_deadlines(std::chrono::nanoseconds suspended);
  // Returns the descriptors of the link's socket. When one of them is readable, process_events() is
  // due.
  std::vector<int> descriptors() const { return socket_.descriptors(); }

  std::uint32_t incarnation() const noexcept { return incarnation_; }
  // Returns the incarnation of server 0 in the last RollBack message; 0 if none was received.
  std::uint32_t roll_back_incarnation() const noexcept { return roll_back_incarnation_; }

 private:
  std::string name() const;  // such as "server 0 at 10.0.0.7:4000"
  void send_hello(bool with_declaration);
  void watch_server(const std::string& process);
  void on_message(const wire::MessageT& message);
  void on_welcome(const wire::WelcomeT& welcome);

  ClientState& state_;
  const ClientOptions& options_;
  // The link has a ZeroMQ context of its own, so that heartbeats do not wait for the ZeroMQ thread
  // that moves values and gradients.
  wire::Context context_;
  wire::HeartbeatSocket socket_;
  std::vector<wire::MessageT> unsent_;  // messages to send once shard 0 has accepted this worker
  Changes changes_;
  std::uint32_t incarnation_ = 0;
  std::uint32_t roll_back_incarnation_ = 0;
  const std::uint64_t fingerprint_;  // of this worker's declaration
  std::uint64_t call_ = 0;           // number of the connection
  bool is_connected_ = false;
  // The deadline for a new connection after a connection closed before shard 0 had accepted this
  // worker. Empty while the connection is open.
  std::optional<Deadline> lost_before_welcome_;
  bool is_welcome_ = false;  // shard 0 sent Welcome on this connection
  std::chrono::milliseconds peer_timeout_;
  Deadline join_by_;
  Deadline give_up_by_;  // ends the join, even if shard 0 sends messages
  ReconnectTimeout reconnect_;
};

}  // namespace syncopate::ps
