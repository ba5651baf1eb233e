// Memory that a worker shares with the shards on its host: one segment per worker and job, with the
// worker's values and gradients. Bulk data goes through the segment; messages only announce it. The
// worker owns the memory and passes its descriptor to every shard that asks. A shard that cannot
// reach the worker's socket (another host, another network namespace) uses message frames instead.
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
  // Reserves and zeroes `elements` f32 for the values and as many for the gradients. A caller must
  // send the job's `nonce` to receive the descriptor, within `timeout` of its connection. Throws
  // OutOfMemoryError when the machine's memory does not hold the segment; FileError.
  SegmentOwner(std::int64_t elements, const std::string& nonce,
               std::chrono::nanoseconds timeout = std::chrono::seconds(2));
  // Stops answering requests for the segment. Processes that have mapped the segment keep it.
  ~SegmentOwner();
  SegmentOwner(const SegmentOwner&) = delete;
  SegmentOwner& operator=(const SegmentOwner&) = delete;

  const Tensor& values() const noexcept { return values_; }        // [elements] f32
  const Tensor& gradients() const noexcept { return gradients_; }  // [elements] f32
  // Returns the abstract name of the socket that map_segment() connects to.
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

// Enters elements [begin, end) of both blocks in the page tables of this process, which saves the
// first step one page fault per page. It is no error if the kernel does not support that.
void fill_page_tables(const MappedSegment& segment, std::int64_t begin, std::int64_t end) noexcept;

// A request for a worker's segment that waits for the answer. One thread only.
class SegmentCall {
 public:
  // Sends the request to the worker at socket `name`. Returns nothing when the worker cannot be
  // reached: it runs on another host, in another network namespace or as another user, or has
  // ended. Throws FileError when no descriptors are left.
  static std::optional<SegmentCall> begin(const std::string& name, const std::string& nonce,
                                          std::int64_t elements);

  // Readable once the worker has answered.
  int descriptor() const noexcept { return worker_.descriptor(); }
  // Maps the segment; call it when descriptor() is readable. Returns nothing when the worker has
  // ended. Throws UsageError when the worker belongs to another job (another nonce) or its segment
  // has another size; FileError when the memory is not sealed against shrinking, which could end
  // this process, or is not a segment; OutOfMemoryError.
  std::optional<MappedSegment> map();

 private:
  SegmentCall(Connection worker, std::string nonce, std::int64_t elements);

  Connection worker_;
  std::string nonce_;
  std::int64_t elements_;
};

// Asks the worker at socket `name` for its segment and maps it. Returns nothing when the worker
// cannot be reached, as SegmentCall, or did not answer by the deadline. Throws as SegmentCall.
std::optional<MappedSegment> map_segment(const std::string& name, const std::string& nonce,
                                         std::int64_t elements, const Deadline& deadline);

}  // namespace syncopate::ps
