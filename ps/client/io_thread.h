// A client's I/O thread. It owns the sockets: the control link to shard 0 and a data link to every
// shard. Callers queue messages and requests for it; results go to ClientState.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "ps/client/client_state.h"
#include "ps/client/control_link.h"
#include "ps/client/request_queue.h"
#include "ps/client/shard_link.h"
#include "ps/net/wake_event.h"

namespace syncopate::ps {

// A request on its way from a caller to the I/O thread.
struct OutgoingRequest {
  int shard = 0;
  ShardRequest request;
  int roll_backs = 0;  // ClientState::roll_backs_known of the caller
};

wire::MessageT make_lease_request();

class IoThread {
 public:
  // Starts the thread. `options` and `state` must outlive it, as must the memory of all requests.
  IoThread(const ClientOptions& options, ClientState& state);
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  ~IoThread();

  // Thread-safe. They return at once.
  void send_control(wire::MessageT message);
  void send(std::vector<OutgoingRequest> requests);
  void send(OutgoingRequest request);

 private:
  void run(const std::stop_token& stop);
  void wait_for_events();
  void process_queues();
  // Whether the request was made before its caller knew of a roll-back or of a withdrawn snapshot.
  bool is_void(const OutgoingRequest& outgoing);
  // Sends the message, and remembers what must be sent again if the connection breaks.
  void send_and_remember(wire::MessageT message);
  void send_ready();
  void send_unanswered_again();
  void on_control_changes(const ControlLink::Changes& changes);
  void roll_back(std::uint64_t snapshot);
  void start_from(const RunPosition& start);
  void assign(const wire::AppointmentT& assignment);

  const ClientOptions& options_;
  ClientState& state_;
  wire::Context context_;
  WakeEvent wake_;
  std::mutex mutex_;
  std::vector<wire::MessageT> messages_;   // GUARDED_BY(mutex_), for shard 0
  std::vector<OutgoingRequest> requests_;  // GUARDED_BY(mutex_)
  // The members below are used by the I/O thread only.
  ControlLink control_;
  std::vector<std::unique_ptr<ShardLink>> links_;
  bool must_send_ready_ = false;  // after a roll-back, once all shards have answered
  bool awaits_start_ = false;
  std::uint64_t sequence_at_roll_back_ = 0;
  // Messages to repeat when the connection broke: shard 0 may not have received them.
  std::optional<wire::InitialisedT> initialised_;
  std::optional<wire::StopRequestT> stop_request_;
  bool is_leaving_ = false;

  std::jthread thread_;  // last: it uses the other members
};

}  // namespace syncopate::ps
