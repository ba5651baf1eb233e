// The requests to one shard that are not answered yet. The queue decides which requests may be sent
// now. They are sent in the order of the calls, within the bytes that the shard grants
// (ps/wire/PROTOCOL.md, Credit).
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

// A request to a shard. The spans `payload` and `answer` are borrowed until the request is
// answered. The spans of kWrite and kReadSnapshot requests are no longer used once the client has
// failed; the I/O thread uses them with ClientState::mutex locked.
struct ShardRequest {
  enum class Kind : std::uint8_t { kPush, kPull, kWrite, kReadSnapshot };
  Kind kind = Kind::kPull;
  int bucket = 0;  // -1: the request is for the running statistics
  wire::MessageT message;
  std::vector<std::span<const std::byte>> payload;  // frames of the request after the header
  std::vector<std::span<std::byte>> answer;         // memory for the frames of the answer
  // The bytes of credit that the request takes if its values or gradient are sent in frames. A
  // request through shared memory takes fewer.
  std::int64_t credit_bytes = 0;
};

inline std::int64_t size_of(const wire::BucketPlace& place) { return place.end() - place.begin(); }

ShardRequest pull_request(int bucket, const wire::DeclarationT& declaration);
// Returns how many bytes a bucket's values take in an answer.
std::int64_t value_bytes(int bucket, const wire::DeclarationT& declaration);

struct OpenRequest {
  ShardRequest request;
  bool is_sent = false;         // sent on this connection
  std::int64_t held_bytes = 0;  // credit that the request holds
  std::optional<Deadline> next_probe;
  int times_unknown = 0;  // how often the shard did not know the request
};

// The queue of requests to one shard. Used by the I/O thread only.
class RequestQueue {
 public:
  using Key = std::pair<ShardRequest::Kind, int>;  // kind and bucket

  // Adds a request. Precondition: no request of this kind for this bucket is open.
  void add(ShardRequest request);
  // Allows requests to be sent. Called when the connection to the shard is up. `credit` is the most
  // bytes that unanswered requests may have. `uses_segment` says whether the shard maps this
  // worker's shared memory.
  void begin_connection(std::int64_t credit, bool uses_segment);
  // Marks all open requests as not sent, so that they are sent again over the next connection.
  // Called when the connection is lost.
  void end_connection();
  void clear();
  // Removes requests that read snapshots other than `snapshot`, because the shard will not answer
  // them.
  void drop_snapshot_reads_except(std::uint64_t snapshot);

  // Returns the requests that may be sent now and marks them as sent. The returned pointers are
  // valid until one of the requests is finished.
  std::vector<OpenRequest*> take_sendable();
  // Returns the request of this kind and for this bucket that was sent and not answered; null if
  // there is none.
  OpenRequest* find_sent(Key key);
  // Makes the request the next request to be sent. Called when the shard does not know the request.
  void send_again(OpenRequest& open);
  // Gives back the request's credit. Called when the shard has taken the request's frames out of
  // its receive queue.
  void return_credit(OpenRequest& open);
  void finish(Key key);
  // Returns sent requests with an overdue answer, and restarts their timeouts.
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
  std::deque<Key> unsent_;  // in the order in which the client's callers made the requests
};

}  // namespace syncopate::ps
