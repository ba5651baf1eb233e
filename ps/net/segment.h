// Memory that a worker shares with the shards on its host: one segment per worker and job, with the
// worker's values and gradients. Bulk data goes through the segment; messages only announce it. The
// worker owns the memory and passes the memory's descriptor to every shard that requests it. A
// shard that cannot reach the worker's socket, because it is on another host or in another network
// namespace, uses message frames instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"
#include "models/tensor/tensor.h"
#include "ps/net/connection.h"

namespace syncopate::ps {

// The type of a shard's frame that requests a segment from a worker; its payload is a proof of the
// nonce.
inline constexpr std::uint16_t kSegmentRequest = 0x5350;

// The worker's side of a segment. Thread-safe; its own thread answers requests for the descriptor.
class SegmentOwner {
 public:
  // Reserves and zeroes [elements] f32 for the values and [elements] f32 for the gradients. To
  // receive the descriptor, a caller must prove that it knows the job's `nonce`, within `timeout`
  // after it has connected. Throws OutOfMemoryError if the machine does not have enough memory for
  // the segment. Throws FileError.
  SegmentOwner(std::int64_t elements, const std::string& nonce,
               std::chrono::nanoseconds timeout = std::chrono::seconds(2));
  // Stops answering requests for the segment. The segment stays valid in processes that have mapped
  // it.
  ~SegmentOwner();
  SegmentOwner(const SegmentOwner&) = delete;
  SegmentOwner& operator=(const SegmentOwner&) = delete;

  const Tensor& values() const noexcept { return values_; }        // [elements] f32
  const Tensor& gradients() const noexcept { return gradients_; }  // [elements] f32
  // Returns the abstract name of the owner's socket, for map_segment().
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  FileDescriptor memory_;
  Tensor values_;
  Tensor gradients_;
  std::jthread thread_;  // declared last: it uses the other members
};

// A worker's segment, mapped by a shard. Stays valid, with the last values, after the worker exits.
struct MappedSegment {
  Tensor values;     // [elements] f32
  Tensor gradients;  // [elements] f32
};

// Enters elements [begin, end) of values and gradients in the page tables of this process, so that
// the first step has no page faults there. Does nothing if the kernel does not support this.
void fill_page_tables(const MappedSegment& segment, std::int64_t begin, std::int64_t end) noexcept;

// A request for a worker's segment that was sent and not answered yet. One thread only.
class SegmentCall {
 public:
  // Sends the request to the worker at socket `name`. Returns nullopt if the worker cannot be
  // reached, because it runs on another host, in another network namespace or as another user, or
  // has ended. Throws FileError if no descriptors are left.
  static std::optional<SegmentCall> begin(const std::string& name, const std::string& nonce,
                                          std::int64_t elements);

  // Returns a descriptor for poll(2) that is readable once the worker has answered.
  int descriptor() const noexcept { return worker_.descriptor(); }
  // Maps the segment. Must be called when descriptor() is readable. Returns nullopt if the worker
  // has ended. Throws UsageError if the worker belongs to another job (with another nonce) or its
  // segment has another size. Throws FileError if the memory is not a segment, or is not sealed
  // against shrinking (access to memory that has shrunk would end this process). Throws
  // OutOfMemoryError.
  std::optional<MappedSegment> map();

 private:
  SegmentCall(Connection worker, std::string nonce, std::int64_t elements);

  Connection worker_;
  std::string nonce_;
  std::int64_t elements_;
};

// Asks the worker at socket `name` for its segment and maps it. Returns nullopt if the worker
// cannot be reached or has ended (see SegmentCall), or does not answer by the deadline. Throws the
// errors of SegmentCall.
std::optional<MappedSegment> map_segment(const std::string& name, const std::string& nonce,
                                         std::int64_t elements, const Deadline& deadline);

}  // namespace syncopate::ps
