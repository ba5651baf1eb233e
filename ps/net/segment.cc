#include "ps/net/segment.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/buffer.h"
#include "ps/net/descriptor_passing.h"
#include "ps/net/greeting.h"
#include "ps/net/wake_event.h"

namespace syncopate::ps {
namespace {

constexpr std::string_view kSegmentPurpose = "values and gradients";
constexpr std::size_t kPageBytes = 4096;
// The limit of a segment's f32 elements: no job reaches it, and sums of sizes do not overflow.
constexpr std::int64_t kMostElements = std::int64_t{1} << 58;

// Returns what a shard presents at a worker's socket. The socket's name is random, so the proof is
// of no use anywhere else.
std::string segment_request(const std::string& nonce, const std::string& name) {
  return prove(nonce, {"segment of values", name});
}

struct SegmentHeader {
  std::array<char, 8> mark = {'S', 'Y', 'P', 'S', 'e', 'g', '0', '1'};
  std::int64_t elements = 0;
  std::array<char, 64> nonce{};  // first 64 bytes of the job's nonce

  SegmentHeader(std::int64_t num_elements, const std::string& job) : elements(num_elements) {
    job.copy(nonce.data(), nonce.size());
  }
};

// A segment is a header page, then the values, then the gradients; each block begins on a page.
struct SegmentLayout {
  explicit SegmentLayout(std::int64_t num_elements)
      : elements(num_elements),
        block_bytes((static_cast<std::size_t>(num_elements) * sizeof(float) + kPageBytes - 1) /
                    kPageBytes * kPageBytes) {
    check(elements >= 0 && elements <= kMostElements, "a segment's number of elements");
  }
  std::size_t total() const { return whole_huge_pages(kPageBytes + 2 * block_bytes); }

  std::int64_t elements;
  std::size_t block_bytes;
};

MappedSegment segment_in(SharedMapping mapping, const SegmentLayout& layout) {
  const auto blocks = make_mapped_buffer(std::move(mapping), kPageBytes);
  return {.values = Tensor(blocks, 0, {layout.elements}, DType::kF32),
          .gradients = Tensor(blocks, layout.block_bytes, {layout.elements}, DType::kF32)};
}

// Maps and reserves the shared memory of this worker, and writes its header.
MappedSegment map_own_segment(int memory, std::int64_t elements, const std::string& nonce) {
  const SegmentLayout layout(elements);
  SharedMapping mapping(memory, layout.total(), kSegmentPurpose);
  reserve_pages(memory, mapping, 0, layout.total(), kSegmentPurpose);
  const SegmentHeader header(elements, nonce);
  std::memcpy(mapping.data(), &header, sizeof header);
  return segment_in(std::move(mapping), layout);
}

[[noreturn]] void report_segment_size(const std::string& owner, const std::string& found,
                                      const std::string& expected) {
  throw UsageError(
      fmt::format("the shared memory of {} has {}, expected {}; start all tasks with the same "
                  "program, model and flags",
                  owner, found, expected));
}

// Maps shared memory that another process passed, after checking everything that could harm this
// process. `owner` names that process in messages. Throws as map_segment() does.
MappedSegment map_foreign_segment(int memory, std::int64_t elements, const std::string& nonce,
                                  const std::string& owner) {
  const SegmentLayout layout(elements);
  // The seal is checked first: a process that can shrink the file could end this one with SIGBUS.
  if (!is_sealed_against_shrinking(memory)) {
    throw FileError(fmt::format(
        "the shared memory of {} can be made smaller, expected one sealed against it "
        "(F_SEAL_SHRINK); start all tasks with the same program, or use --transport tcp",
        owner));
  }
  struct stat status {};
  if (fstat(memory, &status) != 0) {
    throw FileError(describe_errno("look at", "the shared memory of " + owner, errno));
  }
  if (static_cast<std::size_t>(status.st_size) != layout.total()) {
    report_segment_size(
        owner, fmt::format("{} bytes", status.st_size),
        fmt::format("{} for {} values and as many gradients", layout.total(), elements));
  }
  SharedMapping mapping(memory, layout.total(), kSegmentPurpose);
  const SegmentHeader expected(elements, nonce);
  SegmentHeader found(0, "");
  std::memcpy(&found, mapping.data(), sizeof found);
  if (found.mark != expected.mark || found.nonce != expected.nonce) {
    throw FileError(
        fmt::format("the shared memory of {} does not contain this job's nonce; start all tasks "
                    "with the same program, or use --transport tcp",
                    owner));
  }
  if (found.elements != elements) {
    report_segment_size(owner, fmt::format("{} values", found.elements),
                        fmt::format("{}", elements));
  }
  return segment_in(std::move(mapping), layout);
}

// Passes the descriptor `memory` to every caller that sends this request, until a stop is
// requested.
void serve_segment(DescriptorServer& server, WakeEvent& stopped, int memory,
                   const std::string& expected, const std::stop_token& stop) {
  const std::stop_callback wake(stop, [&stopped] { stopped.notify(); });
  const auto is_of_job = [&expected](const Frame& request) {
    return request.type == kSegmentRequest && is_same_proof(request.payload, expected);
  };
  while (!stop.stop_requested()) {
    std::vector<pollfd> sockets = {{stopped.descriptor(), POLLIN, 0}};
    server.add_to(sockets);
    poll(sockets.data(), sockets.size(), server.poll_milliseconds());
    server.answer(memory, is_of_job);
  }
}

}  // namespace

SegmentOwner::SegmentOwner(std::int64_t elements, const std::string& nonce,
                           std::chrono::nanoseconds timeout)
    : name_(random_socket_name()),
      memory_(make_shared_memory_file(SegmentLayout(elements).total(), kSegmentPurpose)) {
  MappedSegment segment = map_own_segment(memory_.get(), elements, nonce);
  values_ = std::move(segment.values);
  gradients_ = std::move(segment.gradients);
  // The socket listens before any other process can know the socket's name.
  auto server = std::make_unique<DescriptorServer>(
      listen_at_name(name_), static_cast<std::uint32_t>(kProofBytes), timeout);
  auto stopped = std::make_unique<WakeEvent>();
  thread_ = std::jthread([server = std::move(server), stopped = std::move(stopped),
                          memory = memory_.get(),
                          expected = segment_request(nonce, name_)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "ps-segment");
    serve_segment(*server, *stopped, memory, expected, stop);
  });
}

SegmentOwner::~SegmentOwner() = default;

void fill_page_tables(const MappedSegment& segment, std::int64_t begin, std::int64_t end) noexcept {
  for (const Tensor* block : {&segment.values, &segment.gradients}) {
    float* const data = block->f32().data();
    const auto first = reinterpret_cast<std::uintptr_t>(data + begin) / kPageBytes * kPageBytes;
    const auto last = reinterpret_cast<std::uintptr_t>(data + end);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
  }
}

SegmentCall::SegmentCall(Connection worker, std::string nonce, std::int64_t elements)
    : worker_(std::move(worker)), nonce_(std::move(nonce)), elements_(elements) {}

std::optional<SegmentCall> SegmentCall::begin(const std::string& name, const std::string& nonce,
                                              std::int64_t elements) {
  FileDescriptor socket = call_name(name);
  if (!socket) return std::nullopt;
  Connection worker(std::move(socket), "the worker at socket '" + name + "'");
  try {
    worker.queue({kSegmentRequest, segment_request(nonce, name)});
    worker.flush();
  } catch (const PeerError&) {
    return std::nullopt;  // the worker has exited
  }
  check(!worker.has_unsent(), "a new socket takes the request for a segment");
  return SegmentCall(std::move(worker), nonce, elements);
}

std::optional<MappedSegment> SegmentCall::map() {
  FileDescriptor memory;
  try {
    memory = receive_descriptor(worker_.descriptor(), worker_.peer());
  } catch (const PeerError&) {
    return std::nullopt;  // the worker has exited
  }
  if (!memory) {
    throw UsageError(
        fmt::format("shared memory: {} belongs to another job: it refused this job's nonce; is an "
                    "old worker still running?",
                    worker_.peer()));
  }
  return map_foreign_segment(memory.get(), elements_, nonce_, worker_.peer());
}

std::optional<MappedSegment> map_segment(const std::string& name, const std::string& nonce,
                                         std::int64_t elements, const Deadline& deadline) {
  std::optional<SegmentCall> call = SegmentCall::begin(name, nonce, elements);
  if (!call || !wait_ready(call->descriptor(), POLLIN, deadline)) return std::nullopt;
  return call->map();
}

}  // namespace syncopate::ps
