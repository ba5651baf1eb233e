#include "strategies/collective/ring_messages.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

enum MessageKind : std::uint32_t { kGather = 1, kBroadcast = 2, kReason = 3 };

constexpr std::size_t kBroadcastPartBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxReasonBytes = 4096;
// Attempts to transfer before poll(): waking a sleeping core takes 10 to 25 us.
constexpr int kMessageSpins = 30;

std::byte* object_bytes(auto& value) { return reinterpret_cast<std::byte*>(&value); }

}  // namespace

RingMessages::RingMessages(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n)
    : to_next_(std::move(to_next)), from_previous_(std::move(from_previous)), rank_(rank), n_(n) {}

void RingMessages::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                              const AbortReason& abort_reason, ProgressDeadline& deadline) {
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank_);
  // Message i carries the bytes of rank (rank_ - i) mod n_ to the next rank.
  const MessageSequence parts{.memory = all,
                              .part_bytes = mine.size(),
                              .num_parts = n_,
                              .first = rank_,
                              .step = -1,
                              .count = n_ - 1};
  Operation operation{.send = parts, .receive = parts, .head_start = 1};
  operation.receive.first = rank_ - 1;
  operation.header.kind = kGather;
  operation.header.total_bytes = mine.size();
  run(operation, abort_reason, deadline);
}

void RingMessages::broadcast(std::span<std::byte> bytes, int root, const AbortReason& abort_reason,
                             ProgressDeadline& deadline) {
  const auto num_parts =
      static_cast<std::int64_t>((bytes.size() + kBroadcastPartBytes - 1) / kBroadcastPartBytes);
  const MessageSequence parts{.memory = bytes,
                              .part_bytes = kBroadcastPartBytes,
                              .num_parts = num_parts,
                              .step = 1,
                              .count = num_parts};
  Operation operation{.send = parts, .receive = parts};
  if (rank_ == root) {
    operation.receive.count = 0;
    operation.head_start = num_parts;
  }
  if ((rank_ + 1) % n_ == root) operation.send.count = 0;
  operation.header.kind = kBroadcast;
  operation.header.root = static_cast<std::uint64_t>(root);
  operation.header.total_bytes = bytes.size();
  run(operation, abort_reason, deadline);
}

std::span<std::byte> RingMessages::MessageSequence::part(std::int64_t i) const noexcept {
  const auto number =
      static_cast<std::size_t>(((first + step * i) % num_parts + num_parts) % num_parts);
  const std::size_t begin = number * part_bytes;
  return memory.subspan(begin, std::min(part_bytes, memory.size() - begin));
}

void RingMessages::run(const Operation& requested, const AbortReason& abort_reason,
                       ProgressDeadline& deadline) {
  Operation operation = requested;
  operation.header.sequence = sequence_++;
  sent_ = received_ = 0;
  int idle_tries = 0;
  while (sent_ < operation.send.count || received_ < operation.receive.count) {
    abort_reason.throw_if_set();
    const bool received = receive_some(operation);
    const bool sent = send_some(operation);
    if (received || sent) {
      idle_tries = 0;
      continue;
    }
    if (++idle_tries < kMessageSpins) continue;
    if (deadline.passed()) {
      throw LateRank{describe(operation.header), received_ > 0 || received_bytes_ > 0};
    }
    // A descriptor is left out of poll() when no event on it is expected: poll() would return at
    // once, again and again, when the peer hangs up.
    std::array<pollfd, 3> events = {
        pollfd{wants_to_send(operation) ? to_next_.get() : -1, POLLOUT, 0},
        pollfd{wants_to_receive(operation) ? from_previous_.get() : -1, POLLIN, 0},
        pollfd{abort_reason.descriptor(), POLLIN, 0}};
    (void)poll(events.data(), events.size(), deadline.remaining_milliseconds());
  }
}

bool RingMessages::wants_to_send(const Operation& operation) const noexcept {
  return sent_ < operation.send.count && received_ >= sent_ + 1 - operation.head_start;
}

bool RingMessages::wants_to_receive(const Operation& operation) const noexcept {
  return received_ < operation.receive.count;
}

bool RingMessages::send_some(const Operation& operation) {
  if (!wants_to_send(operation)) return false;
  const std::span<std::byte> body = operation.send.part(sent_);
  Header header = operation.header;
  header.message_bytes = body.size();
  const std::size_t of_header = std::min(sent_bytes_, sizeof header);
  const std::size_t of_body = sent_bytes_ - of_header;
  std::array<iovec, 2> pieces = {iovec{object_bytes(header) + of_header, sizeof header - of_header},
                                 iovec{body.data() + of_body, body.size() - of_body}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t bytes = sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw LinkClosed{describe_errno(fmt::format("rank {}: send to", rank_),
                                    fmt::format("rank {}", (rank_ + 1) % n_), errno) +
                     ", in the " + describe(operation.header)};
  }
  sent_bytes_ += static_cast<std::size_t>(bytes);
  if (sent_bytes_ == sizeof header + body.size()) {
    sent_bytes_ = 0;
    ++sent_;
  }
  return true;
}

bool RingMessages::receive_some(const Operation& operation) {
  if (!wants_to_receive(operation)) return false;
  // A message's header is received and checked first. Its body goes straight to the destination.
  const std::span<std::byte> body = operation.receive.part(received_);
  const bool in_header = received_bytes_ < sizeof header_in_;
  std::byte* const into = in_header ? object_bytes(header_in_) + received_bytes_
                                    : body.data() + (received_bytes_ - sizeof header_in_);
  const std::size_t left = sizeof header_in_ + (in_header ? 0 : body.size()) - received_bytes_;
  const ssize_t bytes = recv(from_previous_.get(), into, left, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes == 0) {
    throw LinkClosed{fmt::format("{}'s connection to rank {} closed, in the {}", previous(), rank_,
                                 describe(operation.header))};
  }
  if (bytes < 0) {
    throw LinkClosed{
        describe_errno(fmt::format("rank {}: receive from", rank_), previous(), errno) +
        ", in the " + describe(operation.header)};
  }
  received_bytes_ += static_cast<std::size_t>(bytes);
  if (in_header && received_bytes_ == sizeof header_in_) check_header(operation);
  if (received_bytes_ == sizeof header_in_ + body.size()) {
    received_bytes_ = 0;
    ++received_;
  }
  return true;
}

void RingMessages::check_header(const Operation& operation) {
  const Header& ours = operation.header;
  if (header_in_.magic == ours.magic && header_in_.kind == kReason) {
    const AbortReason never;
    const auto reason = await_reason(never, Deadline::after(std::chrono::seconds(1)));
    throw PeerError(reason.value_or(previous() + " gave up, in the " + describe(ours)));
  }
  if (header_in_.magic != ours.magic || header_in_.kind != ours.kind ||
      header_in_.sequence != ours.sequence || header_in_.root != ours.root ||
      header_in_.total_bytes != ours.total_bytes ||
      header_in_.message_bytes != operation.receive.part(received_).size()) {
    throw PeerError(
        fmt::format("the ranks disagree about what they exchange: rank {} is at the {}, {} at the "
                    "{}; start all tasks with the same program and flags",
                    rank_, describe(ours), previous(), describe(header_in_)));
  }
}

std::string RingMessages::previous() const { return fmt::format("rank {}", (rank_ + n_ - 1) % n_); }

std::string RingMessages::describe(const Header& header) {
  if (header.kind == kGather) {
    return fmt::format("all-gather of {} bytes per rank", header.total_bytes);
  }
  return fmt::format("broadcast of {} bytes from rank {}", header.total_bytes, header.root);
}

void RingMessages::send_reason(std::string_view reason) noexcept {
  if (reason_sent_) return;
  reason_sent_ = true;
  reason = reason.substr(0, kMaxReasonBytes);
  Header header;
  header.kind = kReason;
  header.message_bytes = header.total_bytes = reason.size();
  std::array<iovec, 2> pieces = {iovec{&header, sizeof header},
                                 iovec{const_cast<char*>(reason.data()), reason.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  // Sends no reason in the middle of a message: the next rank would read it as the message's rest.
  if (sent_bytes_ == 0) (void)sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)shutdown(to_next_.get(), SHUT_WR);
}

std::optional<std::string> RingMessages::await_reason(const AbortReason& abort_reason,
                                                      const Deadline& deadline) {
  std::string text;
  std::array<char, kMaxReasonBytes> buffer;
  while (!abort_reason.is_set()) {
    const bool in_header = received_bytes_ < sizeof header_in_;
    const std::size_t left =
        sizeof header_in_ + (in_header ? 0 : header_in_.message_bytes) - received_bytes_;
    if (!in_header && left == 0) {
      if (header_in_.kind == kReason) return text;
      received_bytes_ = 0;
      continue;
    }
    void* const into =
        in_header ? static_cast<void*>(object_bytes(header_in_) + received_bytes_) : buffer.data();
    const ssize_t bytes = recv(from_previous_.get(), into,
                               in_header ? left : std::min(left, buffer.size()), MSG_DONTWAIT);
    if (bytes > 0) {
      received_bytes_ += static_cast<std::size_t>(bytes);
      if (!in_header && header_in_.kind == kReason && text.size() < kMaxReasonBytes) {
        text.append(buffer.data(), static_cast<std::size_t>(bytes));
      }
      continue;
    }
    const bool nothing_yet = bytes < 0 && (errno == EAGAIN || errno == EINTR);
    if (!nothing_yet || deadline.passed()) return std::nullopt;
    std::array<pollfd, 2> events = {pollfd{from_previous_.get(), POLLIN, 0},
                                    pollfd{abort_reason.descriptor(), POLLIN, 0}};
    (void)poll(events.data(), events.size(), deadline.remaining_milliseconds());
  }
  return std::nullopt;
}

}  // namespace syncopate
