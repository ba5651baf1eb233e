#include "strategies/collective/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "strategies/collective/segment_hand_over.h"

namespace syncopate {
namespace {

constexpr std::size_t kPageBytes = std::size_t{2} << 20;  // huge pages, where the system gives them
constexpr std::size_t kNonceBytes = 64;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

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

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer(std::byte* mapping, std::size_t mapped_bytes, std::size_t offset_bytes)
      : mapping_(mapping), mapped_bytes_(mapped_bytes), offset_bytes_(offset_bytes) {}
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;
  ~MappedBuffer() override { munmap(mapping_, mapped_bytes_); }

  std::byte* data() noexcept override { return mapping_ + offset_bytes_; }
  std::size_t size_bytes() const noexcept override { return mapped_bytes_ - offset_bytes_; }
  Device device() const noexcept override { return {}; }

 private:
  std::byte* mapping_;
  std::size_t mapped_bytes_;
  std::size_t offset_bytes_;
};

// `errno` of a call that asks for memory.
[[noreturn]] void report_refusal(const char* action, std::size_t bytes) {
  const int reason = errno;
  // EFAULT: the pages of the mapping cannot be had, of which a write would die.
  if (reason != ENOMEM && reason != ENOSPC && reason != EFAULT) {
    throw FileError(describe_errno(action, "shared memory", reason));
  }
  throw OutOfMemoryError("shared memory: " + std::to_string(bytes >> 20) +
                         " MiB for gradients are not to be had (" +
                         describe_errno(action, "shared memory", reason) +
                         "); start fewer replicas on this machine or give the job more memory");
}

FileDescriptor make_memory(const Layout& layout) {
  FileDescriptor memory(memfd_create("syncopate", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(layout.total())) != 0) {
    report_refusal("make", layout.total());
  }
  return memory;
}

// Pages that are missing when they are first written end the process with SIGBUS: asked for now,
// they are a line that can be read. Each task asks for its own, so that they lie near its CPUs; and
// through its mapping, which wants huge pages, where the descriptor would get small ones (kernels
// before 5.14 know only that).
void reserve(const FileDescriptor& memory, std::byte* mapping, std::size_t begin,
             std::size_t size) {
  int result = 0;
  do {
    result = madvise(mapping + begin, size, MADV_POPULATE_WRITE);
    if (result != 0 && errno == EINVAL) {
      result = fallocate(memory.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(size));
    }
  } while (result != 0 && errno == EINTR);
  if (result != 0) report_refusal("reserve", size);
}

std::shared_ptr<Buffer> map(int memory, const Layout& layout) {
  void* mapping = mmap(nullptr, layout.total(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapping == MAP_FAILED) report_refusal("map", layout.total());
  madvise(mapping, layout.total(), MADV_HUGEPAGE);
  return std::make_shared<MappedBuffer>(static_cast<std::byte*>(mapping), layout.total(),
                                        kNonceBytes);
}

}  // namespace

std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::int64_t block_elements,
                                             std::chrono::nanoseconds patience) {
  const std::vector<Member>& members = membership.members();
  const Member& me = members[static_cast<std::size_t>(membership.index())];
  const Layout layout{
      .header_bytes = rounded(kNonceBytes + header_bytes),
      .block_bytes = rounded(static_cast<std::size_t>(block_elements) * sizeof(float)),
      .num_ranks = members.back().first_replica + members.back().num_replicas};
  const FileDescriptor memory = hand_to_all(
      membership, describe(layout, block_elements), [&] { return make_memory(layout); }, patience);
  if (!memory) return nullptr;
  const std::size_t own = static_cast<std::size_t>(me.num_replicas) * layout.block_bytes;
  auto segment = std::make_unique<SharedSegment>();
  segment->memory = map(memory.get(), layout);
  std::byte* front = segment->memory->data() - kNonceBytes;
  if (me.index == 0) reserve(memory, front, 0, layout.header_bytes);
  reserve(memory, front, layout.block(me.first_replica), own);
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
