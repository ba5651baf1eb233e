// A worker's data connection to one shard: the greeting, credit, open requests, and how requests
// are sent again after the connection broke or the shard was restarted.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "models/tensor/sums.h"
#include "ps/client/client_state.h"
#include "ps/client/request_queue.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/net/readable_set.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

// The data connection of a worker to one shard. Used by the I/O thread only.
class ShardLink {
 public:
  // Registers the link's descriptors in `readable` under the number `shard`. The link keeps
  // references to the objects that are passed, so they must outlive the link.
  ShardLink(wire::Context& context, ReadableSet& readable, ClientState& state,
            const ClientOptions& options, int shard);

  // Sets the shard's address; an address with incarnation 0 means that the shard is away.
  // `worker_incarnation` is the incarnation of this worker.
  void set_address(const wire::ServerAddressT& address, std::uint32_t worker_incarnation);
  void send(ShardRequest request);
  // Drops all open requests. Called when the shards roll back; the shard answers no push up to
  // `sequence` any more. The link connects again when set_address() is called.
  void roll_back(std::uint64_t sequence);
  // Drops requests that read snapshots other than `snapshot`, because the shard will not answer
  // them.
  void drop_snapshot_reads_except(std::uint64_t snapshot) {
    requests_.drop_snapshot_reads_except(snapshot);
  }
  bool is_welcome() const noexcept { return is_welcome_; }
  // Receives the shard's messages and link events, and sends what can be sent to the shard.
  void process_events();
  // Asks the shard about overdue pushes, and sends overdue pulls, writes and reads of snapshots
  // again. Connects again, or fails the client, when the shard was silent for too long.
  void check_timeouts();
  // Restarts the running timeouts, so that the time `suspended`, for which this process did not
  // run, does not count as silence of the shard.
  void extend_deadlines(std::chrono::nanoseconds suspended);

 private:
  std::string name() const;  // such as "server 1 at 10.0.0.7:4000"
  void connect();
  void close();
  void disconnect();
  void send_hello();
  void send_sendable();
  // Sends a message with the session token of this connection.
  void send_message(wire::MessageT message);
  void send_request(ShardRequest& request);
  void send_pulls(const std::vector<const ShardRequest*>& requests);
  void on_message(const wire::Received& message);
  void on_welcome(const wire::DataWelcomeT& welcome);
  void on_probe_answer(const wire::ProbeAnswerT& answer);
  void on_values(const wire::ValuesT& header, const wire::Envelope& envelope);
  // Handles the answers to writes and to reads of a snapshot: the messages Written and
  // SnapshotValues.
  void on_copy_answer(ShardRequest::Kind kind, int bucket, const wire::Envelope& envelope);
  void start_answer_timeout();
  // Fails the client because its connection to the shard has been broken for too long.
  void fail_disconnected(const std::string& reason);

  wire::Context& context_;
  ReadableSet& readable_;
  ClientState& state_;
  const ClientOptions& options_;
  const int shard_;
  const SumKernels& sums_;
  wire::ServerAddressT address_;
  std::uint32_t worker_incarnation_ = 0;
  // The sequence number of the last answered push to each bucket of the shard.
  std::map<int, std::uint64_t> answered_;
  std::unique_ptr<wire::Socket> socket_;
  std::optional<ReadableSet::Registration> registration_;  // of the socket
  bool is_welcome_ = false;   // the shard has answered the Hello on this connection
  bool was_welcome_ = false;  // the shard has answered a Hello on any connection
  bool uses_segment_ = false;
  std::uint32_t shard_incarnation_ = 0;
  RequestQueue requests_;
  std::optional<Deadline> next_hello_;
  std::uint64_t connections_ = 0;  // number of connections made so far
  std::uint64_t session_ = 0;      // the token that the shard gave to this connection
  // The deadline for the shard's next message. Set when the link sends a message that shards answer
  // at once.
  std::optional<Deadline> answers_until_;
  std::chrono::milliseconds answer_timeout_;  // doubles with each connection that brings no answer
  ReconnectTimeout reconnect_;
};

}  // namespace syncopate::ps
