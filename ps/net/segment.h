// Memory that a worker shares with the shards on its host: its values and its gradients, one
// segment per worker and job. Bulk goes through it, messages only say that it is there. The worker
// owns it and hands its descriptor to whichever shard asks; a shard that cannot reach the worker's
// socket (another host, another network namespace) uses frames instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "models/tensor/tensor.h"

namespace syncopate::ps {

// The worker's end. Thread-safe; a thread of its own answers those who ask.
class SegmentOwner {
 public:
  // elements: f32, of the values and again of the gradients; all reserved when it returns, zeroed.
  // nonce: the job's, which whoever asks must know.
  // patience: how long one who called and says nothing is listened to.
  // Throws OutOfMemoryError when the machine's memory does not hold it, FileError.
  SegmentOwner(std::int64_t elements, const std::string& nonce,
               std::chrono::nanoseconds patience = std::chrono::seconds(2));
  // Hands out nothing more; who has mapped the segment keeps it.
  ~SegmentOwner();
  SegmentOwner(const SegmentOwner&) = delete;
  SegmentOwner& operator=(const SegmentOwner&) = delete;

  const Tensor& values() const noexcept { return values_; }        // [elements] f32
  const Tensor& gradients() const noexcept { return gradients_; }  // [elements] f32
  // What map_segment() asks for: a socket of the abstract namespace.
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  FileDescriptor memory_;
  Tensor values_;
  Tensor gradients_;
  std::jthread thread_;  // last: it uses the rest
};

// The shard's end. Stays valid when the worker has ended, with what it wrote last.
struct MappedSegment {
  Tensor values;     // [elements] f32
  Tensor gradients;  // [elements] f32
};

// Nothing when the worker cannot be reached: it is on another host, in another network namespace,
// of another user, has ended, or did not answer by the deadline. Throws UsageError when it is there
// but of another job (another nonce) or another size, FileError when what it hands over could end
// this process (it can be made smaller) or is no segment of ours, OutOfMemoryError.
std::optional<MappedSegment> map_segment(const std::string& name, const std::string& nonce,
                                         std::int64_t elements, const Deadline& deadline);

}  // namespace syncopate::ps
