// The pushes and pulls of workers that a shard has not answered. Part of RequestService.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/net/segment.h"
#include "ps/shard/consistency.h"
#include "ps/wire/context.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// A push or pull of a worker that the shard has not answered.
struct ServedRequest {
  using Clock = std::chrono::steady_clock;
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  int bucket = 0;    // number of the bucket in the job
  wire::PushT push;  // a pull has sequence 0
  std::vector<zmq::message_t> frames;
  std::vector<float> aligned;  // a copy of the gradient, if its frame is not aligned
  Tensor answer;               // memory for the values; empty if they are written to a segment
  // The worker's segment. It stays mapped while the request is open, because the shard may write to
  // it after the worker has left.
  std::shared_ptr<const MappedSegment> segment;
  bool is_consumed = false;     // the message Consumed has been sent
  bool is_dropped = false;      // the shard has dropped the push because it came too late
  Clock::time_point received;   // when the push was received
  Clock::time_point processed;  // when the push was applied or dropped
};

// The unanswered pushes and pulls of a shard, by token. Used by one thread at a time. All functions
// take constant time.
class ServedRequests {
 public:
  // Adds a request under a new token; a pull has an empty `push`.
  ServedRequest& add(std::uint64_t token, WorkerId worker, std::uint32_t incarnation, int bucket,
                     const wire::PushT& push);
  ServedRequest* find(std::uint64_t token);  // returns null if there is no such request
  void erase(std::uint64_t token);
  // Returns whether this push is among the requests.
  bool has_push(WorkerId worker, std::uint32_t incarnation, int bucket,
                std::uint64_t sequence) const;

 private:
  struct PushName {
    WorkerId worker = 0;
    std::uint32_t incarnation = 0;
    int bucket = 0;
    std::uint64_t sequence = 0;
    bool operator==(const PushName&) const = default;
  };
  struct Hash {
    std::size_t operator()(const PushName& name) const noexcept;
  };

  std::unordered_map<std::uint64_t, ServedRequest> by_token_;
  // A PushName for each push in by_token_. A push that was sent twice occurs twice.
  std::unordered_multiset<PushName, Hash> pushes_;
};

}  // namespace syncopate::ps
