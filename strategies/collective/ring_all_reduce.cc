#include "strategies/collective/ring_all_reduce.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/tensor/sums.h"

namespace syncopate {
namespace {

constexpr std::size_t kScratchChunkBytes = kBlockElements * sizeof(float);

std::int64_t floor_of_quotient(std::int64_t a, std::int64_t b) noexcept {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

}  // namespace

RingPartition::RingPartition(std::int64_t index, std::int64_t length, int n)
    : index_(index),
      length_(length),
      first_chunk_(floor_of_quotient(index, kBlockElements)),
      n_(n) {
  if (length == 0) return;
  const std::int64_t last_chunk = floor_of_quotient(index + length - 1, kBlockElements);
  const std::int64_t num_chunks = last_chunk - first_chunk_ + 1;
  num_segments_ = (num_chunks + n - 1) / n;
}

ChunkRange RingPartition::chunk(std::int64_t segment, std::int64_t residue) const noexcept {
  const std::int64_t within_segment = ((residue - first_chunk_) % n_ + n_) % n_;
  const std::int64_t chunk_begin =
      (first_chunk_ + segment * n_ + within_segment) * kBlockElements - index_;
  const std::int64_t begin = std::max<std::int64_t>(chunk_begin, 0);
  const std::int64_t end = std::min(chunk_begin + kBlockElements, length_);
  return {begin, std::max<std::int64_t>(end - begin, 0)};
}

StreamOrder::StreamOrder(std::int64_t num_segments, int num_steps) noexcept
    : num_segments_(num_segments),
      segments_apart_(std::clamp<std::int64_t>(num_segments, 1, kSegmentsApart)),
      num_steps_(num_steps) {
  end_time_ = num_segments == 0 ? 0 : num_segments + segments_apart_ * (num_steps - 1);
  begin_time();
}

// Sets step_ to the first step at time time_ that has a segment: segment numbers begin at 0, and
// the segment of a step is time_ - segments_apart_ * step.
void StreamOrder::begin_time() noexcept {
  const std::int64_t segments_behind = time_ - num_segments_ + 1;
  step_ = segments_behind <= 0
              ? 0
              : static_cast<int>((segments_behind + segments_apart_ - 1) / segments_apart_);
}

void StreamOrder::advance() noexcept {
  ++step_;
  while (!at_end() && (step_ >= num_steps_ || time_ - segments_apart_ * step_ < 0)) {
    ++time_;
    begin_time();
  }
}

bool StreamOrder::is_past(Position position) const noexcept {
  const std::int64_t its_time = position.segment + segments_apart_ * position.step;
  return its_time < time_ || (its_time == time_ && position.step < step_);
}

std::string to_string(const RingOperation::Header& header) {
  return fmt::format("all-reduce {} ({} {} elements at index {})", header.sequence + 1,
                     header.length, name(static_cast<DType>(header.dtype)), header.index);
}

RingAllReduce::RingAllReduce(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n,
                             const Operations& operations)
    : to_next_(std::move(to_next)),
      from_previous_(std::move(from_previous)),
      rank_(rank),
      n_(n),
      operations_(operations),
      kernels_(sum_kernels(detect_isa())),
      scratch_(make_host_tensor({kScratchChunks, kBlockElements}, DType::kF32)) {}

std::uint64_t RingAllReduce::ended() const noexcept {
  return std::min(send_.operation, receive_.operation);
}

void RingAllReduce::shut_down_sending() noexcept { (void)shutdown(to_next_.get(), SHUT_WR); }

bool RingAllReduce::wants_to_receive(std::uint64_t submitted) const noexcept {
  return receive_.operation < submitted;
}

bool RingAllReduce::wants_to_send(std::uint64_t submitted) const noexcept {
  return send_.operation < submitted && may_send(send_);
}

bool RingAllReduce::progress(std::uint64_t submitted) {
  const bool received = receive(submitted);
  const bool sent = send(submitted);
  return received || sent;
}

// Returns the chunk that this rank sends or receives at a position of the stream. `residue` is the
// residue of the chunk in step 0, and each step lowers it by 1: rank r sends the chunk of residue
// r - 1 - k in step k and receives the one of residue r - 2 - k.
ChunkRange RingAllReduce::chunk(const Cursor& at, std::int64_t residue) const noexcept {
  const StreamOrder::Position position = at.order.position();
  return operation(at).partition.chunk(position.segment, residue - position.step);
}

std::span<std::byte> RingAllReduce::chunk_bytes(const Cursor& at,
                                                std::int64_t residue) const noexcept {
  const ChunkRange range = chunk(at, residue);
  const RingOperation& of = operation(at);
  return {of.data + static_cast<std::size_t>(range.begin) * of.element_bytes,
          static_cast<std::size_t>(range.count) * of.element_bytes};
}

// Moves the cursor to the next chunk that has elements, or to the header of the next operation.
void RingAllReduce::advance(Cursor& at, std::int64_t residue) const noexcept {
  at.done_bytes = 0;
  if (at.in_header) {
    const RingPartition& partition = operation(at).partition;
    at.order = StreamOrder(partition.num_segments(), partition.num_steps());
    at.in_header = false;
  } else {
    at.order.advance();
  }
  while (!at.order.at_end() && chunk(at, residue).count == 0) at.order.advance();
  if (at.order.at_end()) {
    ++at.operation;
    at.in_header = true;
  }
}

// The chunk of step k may be sent when the chunk of step k - 1 of its segment has been received.
bool RingAllReduce::may_send(const Cursor& at) const noexcept {
  if (at.in_header) return true;
  const StreamOrder::Position position = at.order.position();
  if (position.step == 0 || receive_.operation > at.operation) return true;
  return receive_.operation == at.operation && !receive_.in_header &&
         receive_.order.is_past({position.segment, position.step - 1});
}

std::byte* RingAllReduce::scratch_chunk(int ahead) noexcept {
  const auto slot = static_cast<std::size_t>((scratch_next_ + ahead) % kScratchChunks);
  return scratch_.bytes().data() + slot * kScratchChunkBytes;
}

void RingAllReduce::IoVectors::add(std::byte* data, std::size_t size) noexcept {
  vectors[static_cast<std::size_t>(count++)] = {data, size};
  bytes += size;
}

RingAllReduce::IoVectors RingAllReduce::vectors_to_send(std::uint64_t submitted) const noexcept {
  IoVectors to_send;
  for (Cursor at = send_; !to_send.full() && at.operation < submitted && may_send(at);
       advance(at, send_residue())) {
    if (at.in_header) {
      // The cast is safe: an iovec's pointer is not const, although sendmsg only reads.
      auto* const header = const_cast<RingOperation::Header*>(&operation(at).header);
      to_send.add(reinterpret_cast<std::byte*>(header) + at.done_bytes,
                  sizeof *header - at.done_bytes);
    } else {
      const std::span<std::byte> bytes = chunk_bytes(at, send_residue());
      to_send.add(bytes.data() + at.done_bytes, bytes.size() - at.done_bytes);
    }
  }
  return to_send;
}

bool RingAllReduce::send(std::uint64_t submitted) {
  IoVectors to_send = vectors_to_send(submitted);
  if (to_send.count == 0) return false;
  msghdr message{};
  message.msg_iov = to_send.vectors.data();
  message.msg_iovlen = static_cast<std::size_t>(to_send.count);
  const ssize_t bytes = sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw LinkClosed{describe_errno(fmt::format("rank {}: send to", rank_),
                                    fmt::format("rank {}", (rank_ + 1) % n_), errno) +
                     ", in " + to_string(operation(send_).header)};
  }
  bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  on_sent(static_cast<std::size_t>(bytes));
  return true;
}

void RingAllReduce::on_sent(std::size_t bytes) noexcept {
  while (bytes > 0) {
    const std::size_t size =
        send_.in_header ? sizeof(RingOperation::Header) : chunk_bytes(send_, send_residue()).size();
    const std::size_t part = std::min(bytes, size - send_.done_bytes);
    bytes -= part;
    send_.done_bytes += part;
    if (send_.done_bytes == size) advance(send_, send_residue());
  }
}

RingAllReduce::IoVectors RingAllReduce::vectors_to_receive(std::uint64_t submitted) noexcept {
  IoVectors to_receive;
  int scratch_chunks = 0;
  for (Cursor at = receive_; !to_receive.full() && at.operation < submitted;
       advance(at, receive_residue())) {
    if (at.in_header) {
      // One recvmsg call ends with the header: the bytes after it are stored only once it is
      // checked, since it may announce another operation.
      if (to_receive.count > 0) break;
      to_receive.add(reinterpret_cast<std::byte*>(&received_header_) + at.done_bytes,
                     sizeof received_header_ - at.done_bytes);
      break;
    }
    const std::span<std::byte> bytes = chunk_bytes(at, receive_residue());
    std::byte* into = bytes.data();
    if (is_partial_sum(at)) {
      if (scratch_chunks == kScratchChunks) break;
      into = scratch_chunk(scratch_chunks++);
    }
    to_receive.add(into + at.done_bytes, bytes.size() - at.done_bytes);
  }
  return to_receive;
}

bool RingAllReduce::receive(std::uint64_t submitted) {
  IoVectors to_receive = vectors_to_receive(submitted);
  if (to_receive.count == 0) return false;
  msghdr message{};
  message.msg_iov = to_receive.vectors.data();
  message.msg_iovlen = static_cast<std::size_t>(to_receive.count);
  const ssize_t bytes = recvmsg(from_previous_.get(), &message, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes <= 0) {
    const std::string previous = fmt::format("rank {}", (rank_ + n_ - 1) % n_);
    const std::string what =
        bytes == 0 ? fmt::format("{}'s connection to rank {} closed", previous, rank_)
                   : describe_errno(fmt::format("rank {}: receive from", rank_), previous, errno);
    throw LinkClosed{what + ", in " + to_string(operation(receive_).header)};
  }
  bytes_received_.fetch_add(bytes, std::memory_order_relaxed);
  on_received(static_cast<std::size_t>(bytes));
  return true;
}

void RingAllReduce::on_received(std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t size = receive_.in_header ? sizeof received_header_
                                                : chunk_bytes(receive_, receive_residue()).size();
    const std::size_t part = std::min(bytes, size - receive_.done_bytes);
    bytes -= part;
    receive_.done_bytes += part;
    if (receive_.done_bytes == size) finish_received();
  }
}

// Handles a header or chunk that has been received completely.
void RingAllReduce::finish_received() {
  if (receive_.in_header) {
    check_header();
    begun_by_previous_.store(receive_.operation + 1, std::memory_order_release);
  } else if (is_partial_sum(receive_)) {
    add_partial_sum();
  }
  advance(receive_, receive_residue());
}

void RingAllReduce::check_header() {
  const RingOperation::Header& own = operation(receive_).header;
  if (received_header_ == own) return;
  throw PeerError(
      fmt::format("the ranks disagree about what they sum: rank {} is at {}, rank {} at {}; start "
                  "all tasks with the same program and flags",
                  rank_, to_string(own), (rank_ + n_ - 1) % n_, to_string(received_header_)));
}

void RingAllReduce::add_partial_sum() {
  const RingOperation& of = operation(receive_);
  const std::span<std::byte> own = chunk_bytes(receive_, receive_residue());
  const std::byte* const partial = scratch_chunk(0);
  const auto count = static_cast<std::int64_t>(own.size() / of.element_bytes);
  if (of.tensor.dtype() == DType::kF32) {
    kernels_.add_f32(reinterpret_cast<float*>(own.data()), reinterpret_cast<const float*>(partial),
                     count);
  } else {
    kernels_.add_bf16(reinterpret_cast<std::uint16_t*>(own.data()),
                      reinterpret_cast<const std::uint16_t*>(partial), count);
  }
  scratch_next_ = (scratch_next_ + 1) % kScratchChunks;
}

}  // namespace syncopate
