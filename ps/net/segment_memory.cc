#include "ps/net/segment_memory.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/buffer.h"

namespace syncopate::ps {
namespace {

constexpr std::string_view kPurpose = "values and gradients";
constexpr std::size_t kPageBytes = 4096;
// No segment is anywhere near it; sums of sizes below it do not overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 58;

struct Header {
  std::array<char, 8> mark = {'S', 'Y', 'P', 'S', 'e', 'g', '0', '1'};
  std::int64_t elements = 0;
  std::array<char, 64> nonce{};  // as much of it as there is room for

  Header(std::int64_t num_elements, const std::string& job) : elements(num_elements) {
    job.copy(nonce.data(), nonce.size());
  }
};

struct Layout {
  explicit Layout(std::int64_t num_elements)
      : elements(num_elements),
        block_bytes((static_cast<std::size_t>(num_elements) * sizeof(float) + kPageBytes - 1) /
                    kPageBytes * kPageBytes) {
    check(elements >= 0 && elements <= kMostElements, "a segment's number of elements");
  }
  std::size_t total() const { return whole_huge_pages(kPageBytes + 2 * block_bytes); }

  std::int64_t elements;
  std::size_t block_bytes;
};

MappedSegment segment_in(SharedMapping mapping, const Layout& layout) {
  const auto blocks = make_mapped_buffer(std::move(mapping), kPageBytes);
  return {.values = Tensor(blocks, 0, {layout.elements}, DType::kF32),
          .gradients = Tensor(blocks, layout.block_bytes, {layout.elements}, DType::kF32)};
}

[[noreturn]] void report_size(const std::string& owner, const std::string& found,
                              const std::string& expected) {
  throw UsageError("shared memory: that of " + owner + " has " + found + ", expected " + expected +
                   "; start all tasks with the same program, model and flags");
}

}  // namespace

FileDescriptor make_segment_memory(std::int64_t elements) {
  return make_shared_memory_file(Layout(elements).total(), kPurpose);
}

MappedSegment map_own_segment(int memory, std::int64_t elements, const std::string& nonce) {
  const Layout layout(elements);
  SharedMapping mapping(memory, layout.total(), kPurpose);
  reserve_pages(memory, mapping, 0, layout.total(), kPurpose);
  const Header header(elements, nonce);
  std::memcpy(mapping.data(), &header, sizeof header);
  return segment_in(std::move(mapping), layout);
}

MappedSegment map_foreign_segment(int memory, std::int64_t elements, const std::string& nonce,
                                  const std::string& owner) {
  const Layout layout(elements);
  // First: whoever could cut it off would end this process with SIGBUS at any later time.
  if (!is_sealed_against_shrinking(memory)) {
    throw FileError("shared memory: that of " + owner +
                    " can be made smaller, expected one sealed against it (F_SEAL_SHRINK); start "
                    "all tasks with the same program, or use --transport tcp");
  }
  struct stat status {};
  if (fstat(memory, &status) != 0) {
    throw FileError(describe_errno("look at", "the shared memory of " + owner, errno));
  }
  if (static_cast<std::size_t>(status.st_size) != layout.total()) {
    report_size(owner, std::to_string(status.st_size) + " bytes",
                std::to_string(layout.total()) + " for " + std::to_string(elements) +
                    " values and as many gradients");
  }
  SharedMapping mapping(memory, layout.total(), kPurpose);
  // The pages are there, but not in this process's tables: later each would cost a step a fault.
  reserve_pages(memory, mapping, 0, layout.total(), kPurpose);
  const Header expected(elements, nonce);
  Header found(0, "");
  std::memcpy(&found, mapping.data(), sizeof found);
  if (found.mark != expected.mark || found.nonce != expected.nonce) {
    throw FileError("shared memory: that of " + owner +
                    " does not carry this job's nonce; start all tasks with the same program, or "
                    "use --transport tcp");
  }
  if (found.elements != elements) {
    report_size(owner, std::to_string(found.elements) + " values", std::to_string(elements));
  }
  return segment_in(std::move(mapping), layout);
}

}  // namespace syncopate::ps
