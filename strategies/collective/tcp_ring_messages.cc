#include "strategies/collective/tcp_ring_messages.h"

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

enum Kind : std::uint32_t { kGather = 1, kBroadcast = 2, kReason = 3 };

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kLongestReason = 4096;
// Tries before poll(): a sleeping core takes 10 to 25 us to wake.
constexpr int kSpins = 30;

std::byte* bytes_of(auto& value) { return reinterpret_cast<std::byte*>(&value); }

}  // namespace

RingMessages::RingMessages(FileDescriptor to_next, FileDescriptor from_previous, int rank, int n)
    : to_next_(std::move(to_next)), from_previous_(std::move(from_previous)), rank_(rank), n_(n) {}

void RingMessages::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                              const EndReason& end, const Deadline& patience) {
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank_);
  // Message i carries the addend of rank - i, to the next rank.
  const Train train{.memory = all,
                    .piece_bytes = mine.size(),
                    .pieces = n_,
                    .first = rank_,
                    .step = -1,
                    .count = n_ - 1};
  Exchange exchange{.send = train, .receive = train, .head_start = 1};
  exchange.receive.first = rank_ - 1;
  exchange.header.kind = kGather;
  exchange.header.total_bytes = mine.size();
  run(exchange, end, patience);
}

void RingMessages::broadcast(std::span<std::byte> bytes, int root, const EndReason& end,
                             const Deadline& patience) {
  const auto pieces = static_cast<std::int64_t>((bytes.size() + kPieceBytes - 1) / kPieceBytes);
  const Train train{
      .memory = bytes, .piece_bytes = kPieceBytes, .pieces = pieces, .step = 1, .count = pieces};
  Exchange exchange{.send = train, .receive = train};
  if (rank_ == root) {
    exchange.receive.count = 0;
    exchange.head_start = pieces;
  }
  if ((rank_ + 1) % n_ == root) exchange.send.count = 0;
  exchange.header.kind = kBroadcast;
  exchange.header.root = static_cast<std::uint64_t>(root);
  exchange.header.total_bytes = bytes.size();
  run(exchange, end, patience);
}

std::span<std::byte> RingMessages::Train::piece(std::int64_t i) const noexcept {
  const auto number = static_cast<std::size_t>(((first + step * i) % pieces + pieces) % pieces);
  const std::size_t begin = number * piece_bytes;
  return memory.subspan(begin, std::min(piece_bytes, memory.size() - begin));
}

void RingMessages::run(const Exchange& asked, const EndReason& end, const Deadline& patience) {
  Exchange exchange = asked;
  exchange.header.sequence = sequence_++;
  sent_ = received_ = 0;
  int idle_tries = 0;
  while (sent_ < exchange.send.count || received_ < exchange.receive.count) {
    end.throw_if_set();
    const bool received = receive_some(exchange);
    const bool sent = send_some(exchange);
    if (received || sent) {
      idle_tries = 0;
      continue;
    }
    if (++idle_tries < kSpins) continue;
    if (patience.passed()) {
      throw LateRank{describe(exchange.header), received_ > 0 || received_bytes_ > 0};
    }
    // A descriptor that is not asked about is left out: its hang-up would wake us for ever.
    std::array<pollfd, 3> events = {
        pollfd{wants_to_send(exchange) ? to_next_.get() : -1, POLLOUT, 0},
        pollfd{wants_to_receive(exchange) ? from_previous_.get() : -1, POLLIN, 0},
        pollfd{end.descriptor(), POLLIN, 0}};
    (void)poll(events.data(), events.size(), patience.remaining_milliseconds());
  }
}

bool RingMessages::wants_to_send(const Exchange& exchange) const noexcept {
  return sent_ < exchange.send.count && received_ >= sent_ + 1 - exchange.head_start;
}

bool RingMessages::wants_to_receive(const Exchange& exchange) const noexcept {
  return received_ < exchange.receive.count;
}

bool RingMessages::send_some(const Exchange& exchange) {
  if (!wants_to_send(exchange)) return false;
  const std::span<std::byte> body = exchange.send.piece(sent_);
  Header header = exchange.header;
  header.message_bytes = body.size();
  const std::size_t of_header = std::min(sent_bytes_, sizeof header);
  const std::size_t of_body = sent_bytes_ - of_header;
  std::array<iovec, 2> pieces = {iovec{bytes_of(header) + of_header, sizeof header - of_header},
                                 iovec{body.data() + of_body, body.size() - of_body}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t bytes = sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw LinkClosed{describe_errno("rank " + std::to_string(rank_) + ": send to",
                                    "rank " + std::to_string((rank_ + 1) % n_), errno) +
                     ", in the " + describe(exchange.header)};
  }
  sent_bytes_ += static_cast<std::size_t>(bytes);
  if (sent_bytes_ == sizeof header + body.size()) {
    sent_bytes_ = 0;
    ++sent_;
  }
  return true;
}

bool RingMessages::receive_some(const Exchange& exchange) {
  if (!wants_to_receive(exchange)) return false;
  // The header first: what follows it goes straight to its place, if it is what we expect.
  const std::span<std::byte> body = exchange.receive.piece(received_);
  const bool in_header = received_bytes_ < sizeof header_in_;
  std::byte* const into = in_header ? bytes_of(header_in_) + received_bytes_
                                    : body.data() + (received_bytes_ - sizeof header_in_);
  const std::size_t left = sizeof header_in_ + (in_header ? 0 : body.size()) - received_bytes_;
  const ssize_t bytes = recv(from_previous_.get(), into, left, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (bytes == 0) {
    throw LinkClosed{previous() + "'s connection to rank " + std::to_string(rank_) +
                     " closed, in the " + describe(exchange.header)};
  }
  if (bytes < 0) {
    throw LinkClosed{
        describe_errno("rank " + std::to_string(rank_) + ": receive from", previous(), errno) +
        ", in the " + describe(exchange.header)};
  }
  received_bytes_ += static_cast<std::size_t>(bytes);
  if (in_header && received_bytes_ == sizeof header_in_) check_header(exchange);
  if (received_bytes_ == sizeof header_in_ + body.size()) {
    received_bytes_ = 0;
    ++received_;
  }
  return true;
}

void RingMessages::check_header(const Exchange& exchange) {
  const Header& ours = exchange.header;
  if (header_in_.magic == ours.magic && header_in_.kind == kReason) {
    const EndReason nothing_else;
    const auto reason = await_reason(nothing_else, Deadline::after(std::chrono::seconds(1)));
    throw PeerError(reason.value_or(previous() + " gave up, in the " + describe(ours)));
  }
  if (header_in_.magic != ours.magic || header_in_.kind != ours.kind ||
      header_in_.sequence != ours.sequence || header_in_.root != ours.root ||
      header_in_.total_bytes != ours.total_bytes ||
      header_in_.message_bytes != exchange.receive.piece(received_).size()) {
    throw PeerError("the ranks disagree about what they exchange: rank " + std::to_string(rank_) +
                    " is at the " + describe(ours) + ", " + previous() + " at the " +
                    describe(header_in_) + "; start all tasks with the same program and flags");
  }
}

std::string RingMessages::previous() const {
  return "rank " + std::to_string((rank_ + n_ - 1) % n_);
}

std::string RingMessages::describe(const Header& header) {
  const std::string size = std::to_string(header.total_bytes) + " bytes";
  if (header.kind == kGather) return "all-gather of " + size + " per rank";
  return "broadcast of " + size + " from rank " + std::to_string(header.root);
}

void RingMessages::send_reason(std::string_view reason) noexcept {
  if (reason_sent_) return;
  reason_sent_ = true;
  reason = reason.substr(0, kLongestReason);
  Header header;
  header.kind = kReason;
  header.message_bytes = header.total_bytes = reason.size();
  std::array<iovec, 2> pieces = {iovec{&header, sizeof header},
                                 iovec{const_cast<char*>(reason.data()), reason.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  // In the middle of a message it would be taken for the rest of it.
  if (sent_bytes_ == 0) (void)sendmsg(to_next_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)shutdown(to_next_.get(), SHUT_WR);
}

std::optional<std::string> RingMessages::await_reason(const EndReason& end,
                                                      const Deadline& deadline) {
  std::string text;
  std::array<char, kLongestReason> buffer;
  while (!end.is_set()) {
    const bool in_header = received_bytes_ < sizeof header_in_;
    const std::size_t left =
        sizeof header_in_ + (in_header ? 0 : header_in_.message_bytes) - received_bytes_;
    if (!in_header && left == 0) {
      if (header_in_.kind == kReason) return text;
      received_bytes_ = 0;
      continue;
    }
    void* const into =
        in_header ? static_cast<void*>(bytes_of(header_in_) + received_bytes_) : buffer.data();
    const ssize_t bytes = recv(from_previous_.get(), into,
                               in_header ? left : std::min(left, buffer.size()), MSG_DONTWAIT);
    if (bytes > 0) {
      received_bytes_ += static_cast<std::size_t>(bytes);
      if (!in_header && header_in_.kind == kReason && text.size() < kLongestReason) {
        text.append(buffer.data(), static_cast<std::size_t>(bytes));
      }
      continue;
    }
    const bool nothing_yet = bytes < 0 && (errno == EAGAIN || errno == EINTR);
    if (!nothing_yet || deadline.passed()) return std::nullopt;
    std::array<pollfd, 2> events = {pollfd{from_previous_.get(), POLLIN, 0},
                                    pollfd{end.descriptor(), POLLIN, 0}};
    (void)poll(events.data(), events.size(), deadline.remaining_milliseconds());
  }
  return std::nullopt;
}

}  // namespace syncopate
