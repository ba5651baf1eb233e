// One virtual worker's gradient on its way to the servers: cut into buckets and encoded.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tensor/tensor.h"
#include "ps/shard/gradient_codec.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

// One thread only.
class OutgoingGradient {
 public:
  // The placement outlives it.
  OutgoingGradient(const ps::CompressionOptions& compression, const ps::Placement& placement);

  // gradients: [arena total] f32. keep: they are overwritten before this gradient is applied, so it
  // is copied; else they are borrowed where the codec allows it.
  void take(const Tensor& gradients, bool keep);
  const ps::EncodedGradient& part(BucketId bucket) const {
    return parts_[static_cast<std::size_t>(bucket)];
  }
  // Of the last gradient taken.
  std::int64_t bytes_to(int server) const;

 private:
  const ps::Placement& placement_;
  std::vector<ps::GradientEncoder> encoders_;  // by bucket
  std::vector<float> kept_;
  std::vector<ps::EncodedGradient> parts_;  // by bucket
};

// Of a server's part of the values, as they travel down.
std::int64_t bytes_of_values(const ps::Placement& placement, int server);

}  // namespace syncopate::bench
