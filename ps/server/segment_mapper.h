// Maps the shared memory of workers on a separate thread. A worker that gets no CPU sends its
// descriptor late, and the page tables of a large model take seconds to fill. During this time the
// data thread serves the other workers. No worker waits for the descriptor of another worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "models/base/deadline.h"
#include "models/tensor/parameter_arena.h"
#include "ps/net/mailbox.h"
#include "ps/net/segment.h"

namespace syncopate::ps {

// Thread-safe.
class SegmentMapper {
 public:
  struct Request {
    std::string segment;  // SegmentOwner::name()
    std::int64_t elements = 0;
    std::vector<Bucket> buckets;  // the parts of the segment that this server uses
    std::string worker;           // names the worker in messages
    // The function that receives the mapped segment, or null if the segment cannot be used; the
    // reason has then been logged. It is called on the mapping thread.
    std::function<void(std::shared_ptr<const MappedSegment>)> on_mapped;
  };

  // `nonce` is the job's nonce. `timeout` is how long a worker may take to send its descriptor.
  // After the timeout, on_mapped receives null, and this worker uses message frames instead.
  SegmentMapper(std::string nonce, std::chrono::milliseconds timeout);
  SegmentMapper(const SegmentMapper&) = delete;
  SegmentMapper& operator=(const SegmentMapper&) = delete;
  ~SegmentMapper();

  void map(Request request);

 private:
  // A request for a segment that has no answer yet: the worker has not sent its descriptor.
  struct Waiting {
    Request request;
    SegmentCall call;
    Deadline deadline;
  };
  // A mapped segment, and a part of it that is not in the page tables yet.
  struct Unfilled {
    std::shared_ptr<const MappedSegment> segment;
    Bucket part;
  };

  void run(const std::stop_token& stop);
  void call_workers();
  // Waits until a worker has answered, a request of map() has arrived, the next timeout of a worker
  // has passed or the thread is told to stop. Returns at once if `unfilled_` is not empty.
  void wait();
  void map_answered();

  const std::string nonce_;
  const std::chrono::milliseconds timeout_;
  Mailbox<Request> requests_;
  // The members below are used by the mapping thread only.
  std::list<Waiting> waiting_;
  std::deque<Unfilled> unfilled_;
  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace syncopate::ps
