// The requests to one shard that are not answered yet. The queue decides which may be sent now: in
// the order of the calls, within the bytes that the shard grants (PROTOCOL.md, Credit).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// A request to a shard. Its memory is borrowed until the answer. The memory of kWrite and
// kReadSnapshot is borrowed only until the client fails, and is used with ClientState::mutex held.
struct ShardRequest {
  enum class Kind : std::uint8_t { kPush, kPull, kWrite, kReadSnapshot };
  Kind kind = Kind::kPull;
  int bucket = 0;  // -1: the request is for the running statistics
  wire::MessageT message;
  std::vector<std::span<const std::byte>> payload;  // of the request: frames behind the header
  std::vector<std::span<std::byte>> answer;         // memory for the frames of the answer
  std::int64_t credit_bytes = 0;                    // credit it takes, unless memory is shared
};

inline std::int64_t size_of(const wire::BucketPlace& place) { return place.end() - place.begin(); }

ShardRequest pull_request(int bucket, const wire::DeclarationT& declaration);
// Returns the bytes of a bucket's values in an answer.
std::int64_t value_bytes(int bucket, const wire::DeclarationT& declaration);

struct OpenRequest {
  ShardRequest request;
  bool is_sent = false;         // sent on this connection
  std::int64_t held_bytes = 0;  // credit that the request holds
  std::optional<Deadline> next_probe;
  int times_unknown = 0;  // how often the shard did not know the request
};

// The queue of requests is used by the I/O thread only.
class RequestQueue {
 public:
  using Key = std::pair<ShardRequest::Kind, int>;  // kind and bucket

  // Adds a request. Precondition: no request of this kind for this bucket is open.
  void add(ShardRequest request);
  // Called when the connection to the shard is up. `credit`: the most bytes of unanswered requests.
  // `uses_segment`: the shard maps this worker's shared memory.
  void begin_connection(std::int64_t credit, bool uses_segment);
  // Called when the connection is lost: all open requests must be sent again.
  void end_connection();
  void clear();
  // Removes read requests for snapshots other than `snapshot`: they will not be answered.
  void drop_snapshot_reads_except(std::uint64_t snapshot);

  // Returns the requests that may be sent now and marks them as sent. The returned pointers are
  // valid until one of the requests is finished.
  std::vector<OpenRequest*> take_sendable();
  // Returns the open request of this key, or null when no such request is open and sent.
  OpenRequest* find_sent(Key key);
  // Called when the shard has lost the request: it is the next request to be sent.
  void send_again(OpenRequest& open);
  // Called when the frames of the request have left the shard's receive queue.
  void return_credit(OpenRequest& open);
  void finish(Key key);
  // Returns requests that were sent too long ago without an answer, and restarts their timeouts.
  std::vector<OpenRequest*> take_overdue();

 private:
  std::int64_t bytes_in_frames(const ShardRequest& request) const;
  bool fits(ShardRequest::Kind kind, std::int64_t bytes) const;
  void take_credit(OpenRequest& open, std::int64_t bytes);

  bool is_connected_ = false;
  bool uses_segment_ = false;
  std::int64_t credit_ = 0;
  std::int64_t credit_used_ = 0;
  std::int64_t credit_of_steps_ = 0;  // the part of credit_used_ held by pushes and pulls
  std::map<Key, OpenRequest> open_;
  std::deque<Key> unsent_;  // in the order of the requests' calls
};

}  // namespace syncopate::ps
