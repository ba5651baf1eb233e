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

std::int64_t OutgoingGradient::bytes_to(int server) const {
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    if (placement_.owner[b] == server) bytes += static_cast<std::int64_t>(parts_[b].bytes.size());
  }
  return bytes;
}

std::vector<std::int64_t> value_bytes_by_server(const ps::Placement& placement, int servers,
                                                ps::ValuesFormat format) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(servers));
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    const Bucket& bucket = placement.buckets[b];
    bytes[static_cast<std::size_t>(placement.owner[b])] +=
        (bucket.end - bucket.begin) * ps::bytes_per_value(format);
  }
  return bytes;
}

}  // namespace syncopate::bench
