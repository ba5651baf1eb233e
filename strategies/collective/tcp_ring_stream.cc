#include "strategies/collective/tcp_ring_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "strategies/collective/collective.h"

namespace syncopate {
namespace {

constexpr std::size_t kScratchBlockBytes = kBlockElements * sizeof(float);

}  // namespace

std::string to_string(const RingOperation::Header& header) {
  return "all-reduce " + std::to_string(header.sequence + 1) + " (" +
         std::to_string(header.length) + " " + std::string(name(static_cast<DType>(header.dtype))) +
         " elements at index " + std::to_string(header.index) + ")";
}

RingStream::RingStream(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n,
                       const Operations& operations)
    : to_next_(std::move(to_next)),
      from_previous_(std::move(from_previous)),
      rank_(rank),
      n_(n),
      operations_(operations),
      kernels_(sum_kernels(detect_isa())),
      scratch_(make_host_tensor({kScratchBlocks, kBlockElements}, DType::kF32)) {}

std::uint64_t RingStream::ended() const noexcept {
  return std::min(send_.operation, receive_.operation);
}

void RingStream::end_sending() noexcept { (void)shutdown(to_next_.get(), SHUT_WR); }

bool RingStream::wants_to_receive(std::uint64_t submitted) const noexcept {
  return receive_.operation < submitted;
}

bool RingStream::wants_to_send(std::uint64_t submitted) const noexcept {
  return send_.operation < submitted && may_send(send_);
}

bool RingStream::step(std::uint64_t submitted) {
  const bool received = receive(submitted);
  const bool sent = send(submitted);
  return received || sent;
}

BlockRange RingStream::block(const Position& at, std::int64_t remainder) const noexcept {
  const WireOrder::Place place = at.order.place();
  return operation(at).plan.block(place.row, remainder - place.step);
}

std::span<std::byte> RingStream::block_bytes(const Position& at,
                                             std::int64_t remainder) const noexcept {
  const BlockRange range = block(at, remainder);
  const RingOperation& of = operation(at);
  return {of.data + static_cast<std::size_t>(range.begin) * of.element_bytes,
          static_cast<std::size_t>(range.count) * of.element_bytes};
}

void RingStream::advance(Position& at, std::int64_t remainder) const noexcept {
  at.done_bytes = 0;
  if (at.in_header) {
    const RingPlan& plan = operation(at).plan;
    at.order = WireOrder(plan.rows(), plan.steps());
    at.in_header = false;
  } else {
    at.order.advance();
  }
  while (!at.order.at_end() && block(at, remainder).count == 0) at.order.advance();
  if (at.order.at_end()) {
    ++at.operation;
    at.in_header = true;
  }
}

bool RingStream::may_send(const Position& at) const noexcept {
  if (at.in_header) return true;
  const WireOrder::Place place = at.order.place();
  if (place.step == 0 || receive_.operation > at.operation) return true;
  return receive_.operation == at.operation && !receive_.in_header &&
         receive_.order.is_past({place.row, place.step - 1});
}

std::byte* RingStream::scratch_block(int ahead) noexcept {
  const auto slot = static_cast<std::size_t>((scratch_next_ + ahead) % kScratchBlocks);
  return scratch_.bytes().data() + slot * kScratchBlockBytes;
}

void RingStream::Pieces::add(std::byte* data, std::size_t size) noexcept {
  vectors[static_cast<std::size_t>(count++)] = {data, size};
  bytes += size;
}

RingStream::Pieces RingStream::pieces_to_send(std::uint64_t submitted) const noexcept {
  Pieces pieces;
  for (Position at = send_; !pieces.full() && at.operation < submitted && may_send(at);
       advance(at, send_remainder())) {
    if (at.in_header) {
      // sendmsg's vectors are not const, although it only reads.
      auto* const header = const_cast<RingOperation::Header*>(&operation(at).header);
      pieces.add(reinterpret_cast<std::byte*>(header) + at.done_bytes,
                 sizeof *header - at.done_bytes);
    } else {
      const std::span<std::byte> bytes = block_bytes(at, send_remainder());
      pieces.add(bytes.data() + at.done_bytes, bytes.size() - at.done_bytes);
    }
  }
  return pieces;
}

bool RingStream::send(std::uint64_t submitted) {
  Pieces pieces = pieces_to_send(submitted);
  if (pieces.count == 0) return false;
  msghdr message{};
  message.msg_iov = pieces.vectors.data();
  message.msg_iovlen = static_cast<std::size_t>(pieces.count);
  const ssize_t bytes = sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw LinkClosed{describe_errno("rank " + std::to_string(rank_) + ": send to",
                                    "rank " + std::to_string((rank_ + 1) % n_), errno) +
                     ", in " + to_string(operation(send_).header)};
  }
  bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  sent(static_cast<std::size_t>(bytes));
  return true;
}

void RingStream::sent(std::size_t bytes) noexcept {
  while (bytes > 0) {
    const std::size_t size = send_.in_header ? sizeof(RingOperation::Header)
                                             : block_bytes(send_, send_remainder()).size();
    const std::size_t part = std::min(bytes, size - send_.done_bytes);
    bytes -= part;
    send_.done_bytes += part;
    if (send_.done_bytes == size) advance(send_, send_remainder());
  }
}

bool RingStream::receive(std::uint64_t submitted) {
  Pieces pieces;
  int scratch_blocks = 0;
  for (Position at = receive_; !pieces.full() && at.operation < submitted;
       advance(at, receive_remainder())) {
    if (at.in_header) {
      // Nothing behind a header before it has been read: it might be another operation's.
      if (pieces.count > 0) break;
      pieces.add(reinterpret_cast<std::byte*>(&received_header_) + at.done_bytes,
                 sizeof received_header_ - at.done_bytes);
      break;
    }
    const std::span<std::byte> bytes = block_bytes(at, receive_remainder());
    std::byte* into = bytes.data();
    if (is_partial(at)) {
      if (scratch_blocks == kScratchBlocks) break;
      into = scratch_block(scratch_blocks++);
    }
    pieces.add(into + at.done_bytes, bytes.size() - at.done_bytes);
  }
  if (pieces.count == 0) return false;
  msghdr message{};
  message.msg_iov = pieces.vectors.data();
  message.msg_iovlen = static_cast<std::size_t>(pieces.count);
  const ssize_t bytes = recvmsg(from_previous_.get(), &message, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes <= 0) {
    const std::string previous = "rank " + std::to_string((rank_ + n_ - 1) % n_);
    const std::string where = ", in " + to_string(operation(receive_).header);
    throw LinkClosed{
        bytes == 0
            ? previous + "'s connection to rank " + std::to_string(rank_) + " closed" + where
            : describe_errno("rank " + std::to_string(rank_) + ": receive from", previous, errno) +
                  where};
  }
  bytes_received_.fetch_add(bytes, std::memory_order_relaxed);
  received(static_cast<std::size_t>(bytes));
  return true;
}

void RingStream::received(std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t size = receive_.in_header ? sizeof received_header_
                                                : block_bytes(receive_, receive_remainder()).size();
    const std::size_t part = std::min(bytes, size - receive_.done_bytes);
    bytes -= part;
    receive_.done_bytes += part;
    if (receive_.done_bytes == size) finish_received_piece();
  }
}

void RingStream::finish_received_piece() {
  const RingOperation& of = operation(receive_);
  if (receive_.in_header) {
    if (received_header_ != of.header) {
      const int previous = (rank_ + n_ - 1) % n_;
      throw PeerError("the ranks disagree about what they sum: rank " + std::to_string(rank_) +
                      " is at " + to_string(of.header) + ", rank " + std::to_string(previous) +
                      " at " + to_string(received_header_) +
                      "; start all tasks with the same program and flags");
    }
    begun_by_previous_.store(receive_.operation + 1, std::memory_order_release);
  } else if (is_partial(receive_)) {
    const std::span<std::byte> own = block_bytes(receive_, receive_remainder());
    const std::byte* const partial = scratch_block(0);
    const auto count = static_cast<std::int64_t>(own.size() / of.element_bytes);
    if (of.tensor.dtype() == DType::kF32) {
      kernels_.add_f32(reinterpret_cast<float*>(own.data()),
                       reinterpret_cast<const float*>(partial), count);
    } else {
      kernels_.add_bf16(reinterpret_cast<std::uint16_t*>(own.data()),
                        reinterpret_cast<const std::uint16_t*>(partial), count);
    }
    scratch_next_ = (scratch_next_ + 1) % kScratchBlocks;
  }
  advance(receive_, receive_remainder());
}

}  // namespace syncopate
