#include "bench/virtual_clock/outgoing_gradient.h"

#include <cstring>

namespace syncopate::bench {

OutgoingGradient::OutgoingGradient(const ps::CompressionOptions& compression,
                                   const ps::Placement& placement)
    : placement_(placement), parts_(placement.buckets.size()) {
  encoders_.reserve(placement.buckets.size());
  for (const Bucket& bucket : placement.buckets) {
    encoders_.emplace_back(compression, bucket.end - bucket.begin);
  }
}

void OutgoingGradient::take(const Tensor& gradients, bool keep) {
  std::span<const float> from = gradients.f32();
  if (keep) {
    kept_.resize(from.size());
    std::memcpy(kept_.data(), from.data(), from.size_bytes());
    from = kept_;
  }
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    parts_[b] = encoders_[b].encode(part_of(from, placement_.buckets[b]));
  }
}

}  // namespace syncopate::bench
