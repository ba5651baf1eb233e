// Maps the shared memory of workers on a thread of its own. A worker without a CPU sends its
// descriptor late, and the page tables of a large model take seconds to fill; the data thread
// serves the other workers meanwhile.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "models/tensor/parameter_arena.h"
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
    // Called on the mapping thread; with null if the segment cannot be used, which was logged.
    std::function<void(std::shared_ptr<const MappedSegment>)> on_mapped;
  };

  explicit SegmentMapper(std::string nonce);
  SegmentMapper(const SegmentMapper&) = delete;
  SegmentMapper& operator=(const SegmentMapper&) = delete;
  ~SegmentMapper();

  void map(Request request);

 private:
  // A mapped segment and a part of it that is still to be entered in the page tables.
  struct Unfilled {
    std::shared_ptr<const MappedSegment> segment;
    Bucket part;
  };

  void run(const std::stop_token& stop);
  std::shared_ptr<const MappedSegment> map_now(const Request& request) const;

  const std::string nonce_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Request> requests_;   // GUARDED_BY(mutex_)
  std::deque<Unfilled> unfilled_;  // used by the mapping thread only
  std::jthread thread_;            // declared last: it uses the other members
};

}  // namespace syncopate::ps
