#include "strategies/collective/shared_segment.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_descriptor.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/buffer.h"
#include "ps/net/connection.h"
#include "ps/net/descriptor_passing.h"
#include "ps/net/greeting.h"
#include "strategies/cluster/handshake.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kSegmentNonceBytes = 64;
constexpr std::string_view kPurpose = "gradients";
constexpr std::uint16_t kSegmentHello = 0x5347;
// How often a waiting task checks whether another task has failed.
constexpr milliseconds kFailureCheckInterval(100);
constexpr std::string_view kReached = "reached";
constexpr std::string_view kRankZeroName = "shared memory: rank 0's task";

// The layout of the segment: the nonce, the header, and one block per rank.
class SegmentLayout {
 public:
  SegmentLayout(std::size_t header_bytes, std::span<const std::int64_t> block_elements)
      : begins_{whole_huge_pages(kSegmentNonceBytes + header_bytes)} {
    for (const std::int64_t elements : block_elements) {
      const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
      begins_.push_back(begins_.back() + whole_huge_pages(bytes));
    }
  }

  // Returns where the block of a rank begins, or, behind the last rank, where the segment ends.
  std::size_t block(int rank) const { return begins_[static_cast<std::size_t>(rank)]; }
  std::size_t header_bytes() const { return begins_.front(); }
  std::size_t total() const { return begins_.back(); }

 private:
  std::vector<std::size_t> begins_;
};

// Returns the segment's layout as text, so that tasks can compare layouts: equal layouts have equal
// texts.
std::string layout_text(const SegmentLayout& layout, std::span<const std::int64_t> block_elements) {
  return fmt::format("{} values for {} ranks ({} bytes, of which header {})",
                     std::accumulate(block_elements.begin(), block_elements.end(), std::int64_t{0}),
                     block_elements.size(), layout.total(), layout.header_bytes());
}

// Returns what a task presents at rank 0's socket. The socket's name is random and used once, so
// the proof is of no use anywhere else.
std::string segment_hello(int index, const Membership& membership, const std::string& socket_name) {
  return prove(membership.nonce(), {"segment of gradients", socket_name, std::to_string(index)});
}

void throw_if_failed(const Membership& membership) {
  if (const auto verdict = membership.failure()) throw PeerError(*verdict);
}

// The tasks tell each other whether they reached rank 0's socket, and their layouts. Returns
// whether all reached the socket. Throws UsageError before any task maps a segment of another size.
bool exchange_reached(Membership& membership, bool reached, const std::string& layout) {
  const std::vector<std::string> answers = membership.exchange(
      fmt::format("{}\n{}", reached ? kReached : std::string_view("out of reach"), layout));
  bool all_reached = true;
  std::vector<std::string> layouts;
  for (const std::string& answer : answers) {
    const std::size_t line_end = std::min(answer.find('\n'), answer.size());
    all_reached = all_reached && answer.substr(0, line_end) == kReached;
    layouts.push_back(answer.substr(std::min(line_end + 1, answer.size())));
  }
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    if (layouts[i] == layouts[0]) continue;
    const Member& member = membership.members()[i];
    throw UsageError(
        fmt::format("the tasks' networks differ in size: {} has {}, rank 0 has {}; start all tasks "
                    "with the same program, model and flags",
                    describe(member.index, member.host, member.pid), layouts[i], layouts[0]));
  }
  return all_reached;
}

// Sends the segment's descriptor to every task that presents its proof. The socket's
// name can be called by any program of the host, so other callers, and other users, are rejected.
void send_to_tasks(DescriptorServer& server, const std::string& socket_name,
                   const Membership& membership, const FileDescriptor& descriptor,
                   const Deadline& deadline) {
  std::vector<int> missing(membership.members().size() - 1);
  std::iota(missing.begin(), missing.end(), 1);
  const auto is_missing = [&](const Frame& request) {
    return request.type == kSegmentHello &&
           std::erase_if(missing, [&](int index) {
             return is_same_proof(request.payload, segment_hello(index, membership, socket_name));
           }) > 0;
  };
  while (!missing.empty()) {
    throw_if_failed(membership);
    if (deadline.passed()) {
      const Member& late = membership.members()[static_cast<std::size_t>(missing[0])];
      throw PeerError(
          fmt::format("shared memory: {} did not come for it within {}; is it stopped, or busy?",
                      describe(late.index, late.host, late.pid), in_seconds(deadline.timeout())));
    }
    std::vector<pollfd> sockets;
    server.add_to(sockets);
    poll(sockets.data(), sockets.size(),
         std::min(deadline.remaining_milliseconds(),
                  static_cast<int>(kFailureCheckInterval.count())));
    server.answer(descriptor.get(), is_missing);
  }
}

// Rank 0's part of share_descriptor(): when all tasks have reached its socket, it sends them the
// descriptor that `make` returns.
FileDescriptor hand_out_descriptor(Membership& membership, const std::string& layout,
                                   const std::function<FileDescriptor()>& make,
                                   nanoseconds timeout) {
  const std::string socket_name = random_socket_name();
  DescriptorServer server(listen_at_name(socket_name), static_cast<std::uint32_t>(kProofBytes),
                          timeout);
  membership.exchange(socket_name);
  if (!exchange_reached(membership, true, layout)) return {};
  FileDescriptor descriptor = make();
  send_to_tasks(server, socket_name, membership, descriptor, Deadline::after(timeout));
  return descriptor;
}

FileDescriptor wait_for_descriptor(int socket, const Membership& membership,
                                   const Deadline& deadline) {
  while (!wait_ready(
      socket, POLLIN,
      Deadline::after(std::min<nanoseconds>(kFailureCheckInterval, deadline.remaining())))) {
    throw_if_failed(membership);
    if (!deadline.passed()) continue;
    throw PeerError(fmt::format("{} did not hand it over within {}; is it stopped, or busy?",
                                kRankZeroName, in_seconds(deadline.timeout())));
  }
  FileDescriptor descriptor = receive_descriptor(socket, kRankZeroName);
  if (!descriptor) throw PeerError(fmt::format("{} refused to hand it over", kRankZeroName));
  return descriptor;
}

// The part of every task but rank 0's in share_descriptor(): asks rank 0 for the descriptor.
FileDescriptor receive_from_rank_zero(Membership& membership, const std::string& layout,
                                      nanoseconds timeout) {
  const std::string socket_name = membership.exchange("").front();
  FileDescriptor socket = call_name(socket_name);
  const bool reached = static_cast<bool>(socket);
  if (!exchange_reached(membership, reached, layout)) return {};
  const Deadline deadline = Deadline::after(timeout);
  Connection rank_zero(std::move(socket), std::string(kRankZeroName));
  rank_zero.send({kSegmentHello, segment_hello(membership.index(), membership, socket_name)},
                 deadline);
  return wait_for_descriptor(rank_zero.descriptor(), membership, deadline);
}

// Passes the descriptor of a memory segment, which `make` returns on rank 0, to every task. Returns
// it on every task; returns an empty one on every task when not all tasks reach rank 0's socket.
FileDescriptor share_descriptor(Membership& membership, const std::string& layout,
                                const std::function<FileDescriptor()>& make, nanoseconds timeout) {
  try {
    return membership.index() == 0 ? hand_out_descriptor(membership, layout, make, timeout)
                                   : receive_from_rank_zero(membership, layout, timeout);
  } catch (const PeerError& error) {
    throw PeerError(verdict_or(&membership, error.what()));
  }
}

}  // namespace

std::unique_ptr<SharedSegment> share_segment(Membership& membership, std::size_t header_bytes,
                                             std::span<const std::int64_t> block_elements,
                                             std::chrono::nanoseconds timeout) {
  const std::vector<Member>& members = membership.members();
  const Member& me = members[static_cast<std::size_t>(membership.index())];
  const SegmentLayout layout(header_bytes, block_elements);
  const FileDescriptor memory = share_descriptor(
      membership, layout_text(layout, block_elements),
      [&] { return make_shared_memory_file(layout.total(), kPurpose); }, timeout);
  if (!memory) return nullptr;
  const std::size_t own_begin = layout.block(me.first_replica);
  const std::size_t own_end = layout.block(me.first_replica + me.num_replicas);
  auto segment = std::make_unique<SharedSegment>();
  SharedMapping mapping(memory.get(), layout.total(), kPurpose);
  std::byte* front = mapping.data();
  // Each task reserves the pages of its own ranks, so that the pages lie near its CPUs.
  if (me.index == 0) reserve_pages(memory.get(), mapping, 0, layout.header_bytes(), kPurpose);
  reserve_pages(memory.get(), mapping, own_begin, own_end - own_begin, kPurpose);
  segment->memory = make_mapped_buffer(std::move(mapping), kSegmentNonceBytes);
  // Reading the nonce back proves that the tasks map one segment, and not copies of it.
  const std::string nonce = membership.nonce().substr(0, kSegmentNonceBytes);
  if (me.index == 0) std::memcpy(front, nonce.data(), nonce.size());
  membership.exchange("mapped");
  if (std::memcmp(front, nonce.data(), nonce.size()) != 0) {
    throw PeerError(
        "shared memory: what rank 0's task handed over does not carry this job's nonce");
  }
  for (const std::int64_t elements : block_elements) {
    const int rank = static_cast<int>(segment->blocks.size());
    segment->blocks.emplace_back(segment->memory, layout.block(rank) - kSegmentNonceBytes,
                                 Shape{elements}, DType::kF32);
  }
  return segment;
}

}  // namespace syncopate
