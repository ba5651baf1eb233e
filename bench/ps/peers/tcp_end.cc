#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "bench/ps/peers/ends.h"
#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::seconds kTcpTimeout(60);

class TcpEnd final : public ExchangeEnd {
 public:
  TcpEnd(FileDescriptor socket, bool is_worker)
      : socket_(std::move(socket)), is_worker_(is_worker) {}

  void prepare(const ExchangeShape& shape) override {
    chunk_bytes_ = shape.message_bytes;
    block_.assign(is_worker_ ? shape.bytes : std::min(shape.bytes, chunk_bytes_), std::byte{0});
  }

  void exchange(std::span<const std::byte> outgoing, const Take& take) override {
    const Deadline deadline = Deadline::after(kTcpTimeout);
    const std::size_t size = outgoing.size();
    std::size_t sent = 0;
    std::size_t received = 0;
    std::size_t taken = 0;
    while (sent < size || received < size) {
      const std::size_t may_send = is_worker_ ? size : taken;
      const std::size_t out = send_some(outgoing.subspan(sent, may_send - sent));
      const std::size_t end_of_chunk = std::min(taken + chunk_bytes_, size);
      const std::span<std::byte> chunk = chunk_at(taken, end_of_chunk - taken);
      const std::size_t in = receive_some(chunk.subspan(received - taken));
      sent += out;
      received += in;
      if (in > 0 && received == end_of_chunk) {
        take(taken, chunk);
        taken = received;
      }
      if (out + in > 0) continue;
      const bool wants_out = sent < may_send;
      if (!wait_ready(socket_.get(), static_cast<short>(POLLIN | (wants_out ? POLLOUT : 0)),
                      deadline)) {
        throw PeerError("the other end of the TCP connection is silent");
      }
    }
  }

 private:
  std::span<std::byte> chunk_at(std::size_t offset, std::size_t size) {
    return std::span(block_).subspan(is_worker_ ? offset : 0, size);
  }

  std::size_t send_some(std::span<const std::byte> bytes) const {
    if (bytes.empty()) return 0;
    return moved(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  std::size_t receive_some(std::span<std::byte> bytes) const {
    if (bytes.empty()) return 0;
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) throw PeerError("the other end closed the TCP connection");
    return moved(count);
  }
  static std::size_t moved(ssize_t count) {
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    throw PeerError(describe_errno("exchange bytes over", "the TCP connection", errno));
  }

  FileDescriptor socket_;
  bool is_worker_;
  std::size_t chunk_bytes_ = 0;
  std::vector<std::byte> block_;  // receives all bytes (worker) or one chunk (server)
};

}  // namespace

std::unique_ptr<ExchangeEnd> make_tcp_end(RankGroup& group) {
  const Deadline deadline = Deadline::after(kTcpTimeout);
  if (group.rank() != 0) {
    const Endpoint worker = parse_endpoint(group.share(""), "the worker's endpoint");
    return std::make_unique<TcpEnd>(connect_to(worker, "the worker", deadline).release(), false);
  }
  Listener listener(Endpoint{loopback_address(), 0});
  group.share(to_string(Endpoint{loopback_address(), listener.port()}));
  std::optional<Connection> server = listener.accept(deadline);
  if (!server) throw PeerError("the server did not connect");
  return std::make_unique<TcpEnd>(server->release(), true);
}

}  // namespace syncopate::bench
