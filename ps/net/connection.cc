#include "ps/net/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "models/base/errors.h"

namespace syncopate {
namespace {

PeerError broken(const std::string& peer, int error_number) {
  // Who ends with something of ours unread resets the connection: for us the same.
  if (error_number == EPIPE || error_number == ECONNRESET) {
    return PeerError(peer + ": its connection closed");
  }
  return PeerError(peer +
                   ": its connection broke: " + std::generic_category().message(error_number));
}

bool would_block(int error_number) { return error_number == EAGAIN || error_number == EINTR; }

}  // namespace

Connection::Connection(FileDescriptor socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
  prepare_tcp_socket(socket_.get());
}

void Connection::send(const Frame& frame, const Deadline& deadline) {
  queue(frame);
  for (flush(); has_unsent(); flush()) {
    if (!wait_ready(socket_.get(), POLLOUT, deadline)) {
      throw PeerError(peer_ + ": it did not take a message of " +
                      std::to_string(frame.payload.size()) + " bytes within " +
                      in_seconds(deadline.patience()));
    }
  }
}

Frame Connection::receive(const Deadline& deadline) {
  for (;;) {
    if (std::optional<Frame> frame = try_receive()) return *std::move(frame);
    if (!wait_ready(socket_.get(), POLLIN, deadline)) {
      throw PeerError(peer_ + ": it did not answer within " + in_seconds(deadline.patience()));
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
  if (count < 0 && would_block(errno)) return false;
  if (count < 0) throw broken(peer_, errno);
  if (count == 0) {
    throw PeerError(peer_ + ": its connection closed" +
                    (reader_.empty() ? "" : " in the middle of a message"));
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
    if (count < 0 && would_block(errno)) return;
    if (count < 0) throw broken(peer_, errno);
    sent_ += static_cast<std::size_t>(count);
  }
  unsent_ = {};  // it may have been megabytes
  sent_ = 0;
}

FileDescriptor Connection::release() {
  check(reader_.empty() && !has_unsent(), "a connection is given away with messages in it");
  return std::move(socket_);
}

}  // namespace syncopate
