// A client's I/O thread. The thread owns the sockets: the control link to shard 0 and a data link
// to every shard. Callers queue messages and requests for the thread; the thread writes results to
// ClientState.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "models/base/resource_limits.h"
#include "ps/client/client_state.h"
#include "ps/client/control_link.h"
#include "ps/client/request_queue.h"
#include "ps/client/shard_link.h"
#include "ps/net/mailbox.h"
#include "ps/net/readable_set.h"

namespace syncopate::ps {

// A request to a shard on its way from a caller of the client to the I/O thread.
struct OutgoingRequest {
  int shard = 0;
  ShardRequest request;
  int roll_backs = 0;  // ClientState::roll_backs_known when the request was made
};

wire::MessageT make_lease_request();

class IoThread {
 public:
  // Starts the I/O thread. `options`, `state` and the memory of all requests must outlive it.
  IoThread(const ClientOptions& options, ClientState& state);
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  ~IoThread();

  // send_control() passes a message for shard 0 to the I/O thread; send() passes requests to the
  // shards. Thread-safe; both functions return at once.
  void send_control(wire::MessageT message);
  void send(std::vector<OutgoingRequest> requests);
  void send(OutgoingRequest request);

 private:
  void run(const std::stop_token& stop);
  // Handles the events of the readable descriptors that are registered in readable_ under `number`.
  void process_events(std::uint32_t number);
  void check_timeouts();
  void process_queues();
  // Returns whether the request was made before the last roll-back, or reads a snapshot that is no
  // longer assigned to this worker. Such requests are dropped.
  bool is_void(const OutgoingRequest& outgoing);
  // Sends the message to shard 0. Also stores the message if it must be sent again after the
  // connection broke.
  void send_and_remember(wire::MessageT message);
  void send_ready();
  void send_unanswered_again();
  void on_control_changes(const ControlLink::Changes& changes);
  void roll_back(std::uint64_t snapshot);
  void start_from(const RunPosition& start);
  void assign(const wire::AssignmentT& assignment);

  const ClientOptions& options_;
  ClientState& state_;
  wire::Context context_{wire::io_threads_for(usable_cpu_count())};
  ReadableSet readable_;  // a shard's descriptors are registered under the shard's index
  Mailbox<wire::MessageT> messages_;                // for shard 0
  Mailbox<std::vector<OutgoingRequest>> requests_;  // for all shards
  // Members that only the I/O thread uses.
  ControlLink control_;
  const ReadableSet::Registration wake_registration_;
  const ReadableSet::Registration control_registration_;
  std::vector<std::unique_ptr<ShardLink>> links_;
  bool must_send_ready_ = false;  // after a roll-back: Ready is due once all shards have answered
  bool awaits_start_ = false;
  std::uint64_t sequence_at_roll_back_ = 0;
  // Messages to send again after the control connection broke, since shard 0 may not have received
  // them.
  std::optional<wire::InitialisedT> initialised_;
  std::optional<wire::StopRequestT> stop_request_;
  bool is_leaving_ = false;

  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace syncopate::ps
