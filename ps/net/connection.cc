#include "ps/net/connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "models/base/errors.h"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr std::string_view kFrameMagic = "SYNC";
// The first bytes of a ZeroMQ socket without a routing id. Source: RFC 23/ZMTP, signature.
constexpr std::string_view kZeroMqSignature("\xff\0\0\0\0\0\0\0\1\x7f", 10);
constexpr std::size_t kFrameHeaderBytes = 12;

template <typename T>
void append_number(std::string& bytes, T value) {
  const auto* first = reinterpret_cast<const char*>(&value);
  bytes.append(first, sizeof value);
}

template <typename T>
T number_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Returns received bytes as text, such as "47 45 54 20", for error messages.
std::string as_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (!text.empty()) text += ' ';
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

PeerError connection_error(const std::string& peer, int error_number) {
  // A peer that ends with unread bytes resets the connection; the reset is reported as a close too.
  if (error_number == EPIPE || error_number == ECONNRESET) {
    return PeerError(peer + ": its connection closed");
  }
  return PeerError(fmt::format("{}: its connection broke: {}", peer,
                               std::generic_category().message(error_number)));
}

bool is_retryable(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

using std::chrono::milliseconds;

// The longest attempt to connect to one address: a host that drops packets silently must not delay
// the attempts at its other addresses for longer.
constexpr milliseconds kOneAttempt(3000);
constexpr milliseconds kFirstRetryPause(20);
constexpr milliseconds kLongestRetryPause(500);

// A socket that connects to a free port of its own machine may be given that very port as its local
// port, and then is connected to itself.
bool reached_itself(int descriptor) {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t length = sizeof ours;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &length);
  length = sizeof theirs;
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&theirs), &length);
  return std::memcmp(&ours, &theirs, sizeof ours) == 0;
}

// Tries to connect to one address. Returns 0, or the value of errno.
int try_connect(const addrinfo& address, const FileDescriptor& socket, const Deadline& deadline) {
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    const auto timeout = std::min<std::chrono::nanoseconds>(kOneAttempt, deadline.remaining());
    if (!wait_ready(socket.get(), POLLOUT, Deadline::after(timeout))) return ETIMEDOUT;
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason != 0) return reason;
  }
  return reached_itself(socket.get()) ? ECONNREFUSED : 0;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  check(frame.payload.size() <= kLongestPayload, "a frame's payload is longer than 64 MiB");
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + frame.payload.size());
  bytes += kFrameMagic;
  append_number(bytes, kProtocolVersion);
  append_number(bytes, frame.type);
  append_number(bytes, static_cast<std::uint32_t>(frame.payload.size()));
  return bytes += frame.payload;
}

void FrameReader::append(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += bytes;
}

std::optional<Frame> FrameReader::next(std::string_view peer) {
  const std::string_view bytes = std::string_view(bytes_).substr(begin_);
  const std::size_t seen = std::min(bytes.size(), kFrameMagic.size());
  if (bytes.substr(0, seen) != kFrameMagic.substr(0, seen)) {
    if (bytes.starts_with(kZeroMqSignature)) {
      throw PeerError(fmt::format(
          "{}: it is a parameter server (it uses ZeroMQ's protocol); give all tasks the "
          "same --strategy, and start doctor in place of serve, too",
          peer));
    }
    throw PeerError(
        fmt::format("{}: it uses another protocol (its first bytes are: {}); is another program "
                    "using this port?",
                    peer, as_hex(bytes.substr(0, 8))));
  }
  if (bytes.size() >= 6) {
    if (const auto version = number_at<std::uint16_t>(bytes, 4); version != kProtocolVersion) {
      throw ProtocolVersionError(
          fmt::format("{}: it uses protocol version {}, expected version {}; start the same "
                      "syncopate everywhere",
                      peer, version, kProtocolVersion));
    }
  }
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  const auto length = number_at<std::uint32_t>(bytes, 8);
  if (length > longest_) {
    throw PeerError(fmt::format("{}: it announced a message of {} bytes, expected at most {}", peer,
                                length, longest_));
  }
  if (bytes.size() < kFrameHeaderBytes + length) return std::nullopt;
  Frame frame{number_at<std::uint16_t>(bytes, 6),
              std::string(bytes.substr(kFrameHeaderBytes, length))};
  begin_ += kFrameHeaderBytes + length;
  return frame;
}

Connection::Connection(FileDescriptor socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
  prepare_tcp_socket(socket_.get());
}

void Connection::send(const Frame& frame, const Deadline& deadline) {
  queue(frame);
  for (flush(); has_unsent(); flush()) {
    if (!wait_ready(socket_.get(), POLLOUT, deadline)) {
      throw PeerError(fmt::format("{}: it did not take a message of {} bytes within {}", peer_,
                                  frame.payload.size(), in_seconds(deadline.timeout())));
    }
  }
}

Frame Connection::receive(const Deadline& deadline) {
  for (;;) {
    if (std::optional<Frame> frame = try_receive()) return *std::move(frame);
    if (!wait_ready(socket_.get(), POLLIN, deadline)) {
      throw PeerError(
          fmt::format("{}: it did not answer within {}", peer_, in_seconds(deadline.timeout())));
    }
  }
}

std::optional<Frame> Connection::try_receive() {
  for (;;) {
    if (std::optional<Frame> frame = reader_.next(peer_)) return frame;
    if (!read_some()) return std::nullopt;
  }
}

bool Connection::read_some() {
  std::array<char, 65536> bytes;
  const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && is_retryable(errno)) return false;
  if (count < 0) throw connection_error(peer_, errno);
  if (count == 0) {
    throw PeerError(fmt::format("{}: its connection closed{}", peer_,
                                reader_.empty() ? "" : " in the middle of a message"));
  }
  reader_.append({bytes.data(), static_cast<std::size_t>(count)});
  return true;
}

void Connection::queue(const Frame& frame) {
  unsent_.erase(0, sent_);
  sent_ = 0;
  unsent_ += encode_frame(frame);
}

void Connection::flush() {
  while (has_unsent()) {
    const ssize_t count = ::send(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && is_retryable(errno)) return;
    if (count < 0) throw connection_error(peer_, errno);
    sent_ += static_cast<std::size_t>(count);
  }
  unsent_ = {};  // frees memory: unsent bytes may have been megabytes
  sent_ = 0;
}

FileDescriptor Connection::release() {
  check(reader_.empty() && !has_unsent(), "a released connection has no unread or unsent bytes");
  return std::move(socket_);
}

Connection connect_to(const Endpoint& endpoint, const std::string& peer, const Deadline& deadline) {
  std::string reason;
  std::optional<Deadline> unknown;  // deadline, set while the host name is unknown
  for (milliseconds pause = kFirstRetryPause;; pause = std::min(2 * pause, kLongestRetryPause)) {
    Addresses found;
    try {
      found = look_up(endpoint, 0);
      unknown.reset();
    } catch (const UsageError&) {
      if (!unknown) unknown = Deadline::after(kUnknownHostTimeout);
      if (unknown->passed() || deadline.passed()) throw;
    }
    reason = found.error;
    for (const addrinfo* address = found.list.get(); address != nullptr;
         address = address->ai_next) {
      FileDescriptor socket(
          ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error_number = socket ? try_connect(*address, socket, deadline) : errno;
      if (error_number == 0) return Connection(std::move(socket), peer);
      reason = std::generic_category().message(error_number);
    }
    if (deadline.passed()) break;
    const auto rest = std::chrono::ceil<milliseconds>(deadline.remaining());
    poll(nullptr, 0, static_cast<int>(std::min(pause, rest).count()));
  }
  throw PeerError(fmt::format(
      "{} could not be reached at {} within {}: {}; is it running, and can this machine "
      "connect to that port?",
      peer, to_string(endpoint), in_seconds(deadline.timeout()), reason));
}

std::string why_unreachable(const Endpoint& endpoint) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  try {
    const Addresses found = look_up(endpoint, 0);
    std::string reason = found.error;
    for (const addrinfo* to = found.list.get(); to != nullptr; to = to->ai_next) {
      const FileDescriptor socket(
          ::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error_number = socket ? try_connect(*to, socket, deadline) : errno;
      if (error_number == 0) return "";
      reason = std::generic_category().message(error_number);
    }
    return reason;
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace syncopate
