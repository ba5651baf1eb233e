#include "strategies/collective/shared_segment.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/buffer.h"
#include "strategies/collective/segment_hand_over.h"

namespace syncopate {
namespace {

constexpr std::size_t kNonceBytes = 64;
constexpr std::string_view kPurpose = "gradients";

// Where things stand in the segment: nonce and header, then one block per rank.
struct Layout {
  std::size_t header_bytes;
  std::size_t block_bytes;
  int num_ranks;

  std::size_t block(int rank) const {
    return header_bytes + static_cast<std::size_t>(rank) * block_bytes;
  }
  std::size_t total() const { return block(num_ranks); }
};

// The same text for the same layout.
std::string describe(const Layout& layout, std::int64_t block_elements) {
  return std::to_string(block_elements) + " gradients for each of " +
         std::to_string(layout.num_ranks) + " ranks (" + std::to_string(layout.total()) +
         " bytes, of which header " + std::to_string(layout.header_bytes) + ")";
}

}  // namespace

std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::int64_t block_elements,
                                             std::chrono::nanoseconds patience) {
  const std::vector<Member>& members = membership.members();
  const Member& me = members[static_cast<std::size_t>(membership.index())];
  const Layout layout{
      .header_bytes = whole_huge_pages(kNonceBytes + header_bytes),
      .block_bytes = whole_huge_pages(static_cast<std::size_t>(block_elements) * sizeof(float)),
      .num_ranks = members.back().first_replica + members.back().num_replicas};
  const FileDescriptor memory = hand_to_all(
      membership, describe(layout, block_elements),
      [&] { return make_shared_memory_file(layout.total(), kPurpose); }, patience);
  if (!memory) return nullptr;
  const std::size_t own = static_cast<std::size_t>(me.num_replicas) * layout.block_bytes;
  auto segment = std::make_unique<SharedSegment>();
  SharedMapping mapping(memory.get(), layout.total(), kPurpose);
  std::byte* front = mapping.data();
  // Each task asks for its own, so that they lie near its CPUs.
  if (me.index == 0) reserve_pages(memory.get(), mapping, 0, layout.header_bytes, kPurpose);
  reserve_pages(memory.get(), mapping, layout.block(me.first_replica), own, kPurpose);
  segment->memory = make_mapped_buffer(std::move(mapping), kNonceBytes);
  // The nonce read back: this is the segment of this job, and not a copy of it.
  const std::string nonce = membership.nonce().substr(0, kNonceBytes);
  if (me.index == 0) std::memcpy(front, nonce.data(), nonce.size());
  membership.exchange("mapped");
  if (std::memcmp(front, nonce.data(), nonce.size()) != 0) {
    throw PeerError(
        "shared memory: what rank 0's task handed over does not carry this job's nonce");
  }
  for (int r = 0; r < layout.num_ranks; ++r) {
    segment->blocks.emplace_back(segment->memory, layout.block(r) - kNonceBytes,
                                 Shape{block_elements}, DType::kF32);
  }
  return segment;
}

}  // namespace syncopate
