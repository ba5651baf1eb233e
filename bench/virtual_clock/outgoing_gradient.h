// The gradient of one virtual worker as it is sent to the servers: divided into buckets and
// encoded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

// Encodes the gradients of one worker. One thread only.
class OutgoingGradient {
 public:
  // Makes an encoder for each bucket. placement: the buckets and the server of each bucket; must
  // outlive this object.
  OutgoingGradient(const ps::CompressionOptions& compression, const ps::Placement& placement);

  // Encodes gradients, [arena total] f32. keep: whether the gradients are copied first; true if the
  // caller overwrites `gradients` before the last use of part(). Without `keep`, the parts may
  // refer to the memory of `gradients`, depending on the codec.
  void take(const Tensor& gradients, bool keep);
  const ps::EncodedGradient& part(BucketId bucket) const {
    return parts_[static_cast<std::size_t>(bucket)];
  }
  // Returns the number of encoded bytes of the last gradient for this bucket.
  std::int64_t bytes(BucketId bucket) const {
    return static_cast<std::int64_t>(part(bucket).bytes.size());
  }

 private:
  const ps::Placement& placement_;
  std::vector<ps::GradientEncoder> encoders_;  // one encoder per bucket
  std::vector<float> kept_;
  std::vector<ps::EncodedGradient> parts_;  // one encoded part per bucket
};

// Returns the elements of a bucket of an arena.
template <typename Value>
std::span<Value> part_of(std::span<Value> values, const Bucket& range) {
  return values.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.end - range.begin));
}

}  // namespace syncopate::bench
