// What is asked of one shard and has no answer yet: what may be sent now, in the order in which it
// was asked, within the bytes that the shard grants (PROTOCOL.md, Credit).
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

// One thing asked of a shard. Its bytes are borrowed until it is answered; those of writes and of
// copies only until the board has failed, and are touched under its mutex.
struct ShardRequest {
  enum class Kind : std::uint8_t { kPush, kPull, kWrite, kReadCut };
  Kind kind = Kind::kPull;
  int bucket = 0;  // -1: the running statistics
  wire::MessageT message;
  std::vector<std::span<const std::byte>> payload;  // frames behind the header
  std::vector<std::span<std::byte>> answer;         // where an answer's frames go
  std::int64_t credit_bytes = 0;  // where nothing of it goes through shared memory
};

struct OpenRequest {
  ShardRequest request;
  bool is_sent = false;         // on this connection
  std::int64_t held_bytes = 0;  // of the credit
  std::optional<Deadline> next_probe;
  int times_unknown = 0;  // the shard did not know it, on this connection
};

// The I/O thread only.
class RequestQueue {
 public:
  using Key = std::pair<ShardRequest::Kind, int>;

  // One of a kind per bucket at a time.
  void add(ShardRequest request);
  // A connection with so many bytes of credit, to a shard that shares the worker's memory or not.
  void begin_connection(std::int64_t credit, bool uses_segment);
  // It is no more: all is to be sent again.
  void end_connection();
  void clear();
  // Copies of other cuts will not be answered.
  void drop_copies_but(std::uint64_t cut);

  // What may be sent now, and counts as sent from here on. Valid until one of it is finished.
  std::vector<OpenRequest*> take_what_fits();
  // Null where nothing like it is open, or it is not sent.
  OpenRequest* find_sent(Key key);
  // The shard has lost it: it is the next to be sent.
  void send_again(OpenRequest& open);
  // Its frames have left the shard's queue.
  void give_credit_back(OpenRequest& open);
  void finish(Key key);
  // Sent, and unanswered for so long that the shard is to be asked; counts as asked from here on.
  std::vector<OpenRequest*> take_overdue();

 private:
  std::int64_t bytes_in_frames(const ShardRequest& request) const;
  bool fits(ShardRequest::Kind kind, std::int64_t bytes) const;
  void take_credit(OpenRequest& open, std::int64_t bytes);

  bool is_connected_ = false;
  bool uses_segment_ = false;
  std::int64_t credit_ = 0;
  std::int64_t credit_used_ = 0;
  std::int64_t credit_of_steps_ = 0;  // of that, by pushes and pulls
  std::map<Key, OpenRequest> open_;
  std::deque<Key> unsent_;  // in the order in which they were asked
};

}  // namespace syncopate::ps
