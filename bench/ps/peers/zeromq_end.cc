#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "bench/ps/peers/ends.h"
#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate::bench {
namespace {

constexpr int kZeroMqTimeoutMilliseconds = 60'000;

struct ContextTraits {
  using Type = void*;
  static Type none() noexcept { return nullptr; }
  static void close(Type context) noexcept { zmq_ctx_term(context); }
};
struct SocketTraits {
  using Type = void*;
  static Type none() noexcept { return nullptr; }
  static void close(Type socket) noexcept { zmq_close(socket); }
};

void require(bool fine, const char* action) {
  if (fine) return;
  throw PeerError(std::string("ZeroMQ: ") + action + ": " + zmq_strerror(zmq_errno()));
}

void release_nothing(void* /*bytes*/, void* /*hint*/) {}

class Message {
 public:
  Message() { zmq_msg_init(&message_); }
  // Makes a message that borrows the bytes, which must stay valid until ZeroMQ has sent them.
  explicit Message(std::span<const std::byte> bytes) {
    zmq_msg_init_data(&message_, const_cast<std::byte*>(bytes.data()), bytes.size(),
                      release_nothing, nullptr);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { zmq_msg_close(&message_); }

  zmq_msg_t* get() noexcept { return &message_; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }

 private:
  zmq_msg_t message_{};
};

class ZeroMqEnd final : public ExchangeEnd {
 public:
  ZeroMqEnd(RankGroup& group, bool copies_out)
      : is_worker_(group.rank() == 0),
        copies_out_(copies_out && is_worker_),
        context_(zmq_ctx_new()) {
    socket_.reset(zmq_socket(context_.get(), is_worker_ ? ZMQ_DEALER : ZMQ_ROUTER));
    require(static_cast<bool>(socket_), "make a socket");
    set(ZMQ_SNDHWM, 0);  // no limit: everything sent in an exchange is queued
    set(ZMQ_RCVHWM, 0);
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, kZeroMqTimeoutMilliseconds);
    set(ZMQ_SNDTIMEO, kZeroMqTimeoutMilliseconds);
    meet(group);
  }

  void prepare(const ExchangeShape& shape) override {
    chunk_bytes_ = shape.message_bytes;
    if (copies_out_) block_.assign(shape.bytes, std::byte{0});
  }

  void exchange(std::span<const std::byte> outgoing, const Take& take) override {
    for (std::size_t at = 0; is_worker_ && at < outgoing.size(); at += chunk_bytes_) {
      send(chunk_of(outgoing, at));
    }
    for (std::size_t at = 0; at < outgoing.size(); at += chunk_bytes_) {
      Message worker;
      Message chunk;
      if (!is_worker_) receive(worker);
      receive(chunk);
      hand_on(at, chunk.bytes(), take);
      if (is_worker_) continue;
      require(zmq_msg_send(worker.get(), socket_.get(), ZMQ_SNDMORE) >= 0, "send");
      send(chunk_of(outgoing, at));
    }
  }

 private:
  std::span<const std::byte> chunk_of(std::span<const std::byte> bytes, std::size_t at) const {
    return bytes.subspan(at, std::min(chunk_bytes_, bytes.size() - at));
  }

  void set(int option, int value) {
    require(zmq_setsockopt(socket_.get(), option, &value, sizeof value) == 0, "set an option");
  }

  // Connects the sockets; called by both ranks. The server publishes its port in its row of the
  // group's shared memory, because only rank 0 may share a text.
  void meet(RankGroup& group) {
    const Deadline deadline =
        Deadline::after(std::chrono::milliseconds(kZeroMqTimeoutMilliseconds));
    if (!is_worker_) {
      require(zmq_bind(socket_.get(), "tcp://127.0.0.1:*") == 0, "listen");
      std::array<char, 64> endpoint{};
      std::size_t length = endpoint.size();
      require(zmq_getsockopt(socket_.get(), ZMQ_LAST_ENDPOINT, endpoint.data(), &length) == 0,
              "look up the port");
      const std::string text = endpoint.data();
      group.row(group.rank())[0] = std::stod(text.substr(text.rfind(':') + 1));
    }
    group.barrier(deadline);
    if (is_worker_) {
      const std::string endpoint =
          "tcp://127.0.0.1:" + std::to_string(static_cast<int>(group.row(1)[0]));
      require(zmq_connect(socket_.get(), endpoint.c_str()) == 0, "connect");
    }
  }

  void send(std::span<const std::byte> bytes) {
    Message message(bytes);
    require(zmq_msg_send(message.get(), socket_.get(), 0) >= 0, "send");
  }
  void receive(Message& message) {
    require(zmq_msg_recv(message.get(), socket_.get(), 0) >= 0, "receive");
  }

  void hand_on(std::size_t at, std::span<const std::byte> chunk, const Take& take) {
    if (copies_out_) {
      if (chunk.size() > block_.size() - at) throw PeerError("ZeroMQ: a frame is too long");
      std::memcpy(block_.data() + at, chunk.data(), chunk.size());
      chunk = std::span(block_).subspan(at, chunk.size());
    }
    take(at, chunk);
  }

  bool is_worker_;
  bool copies_out_;
  std::size_t chunk_bytes_ = 0;
  std::vector<std::byte> block_;
  UniqueHandle<ContextTraits> context_;
  UniqueHandle<SocketTraits> socket_;  // declared after its context, so that it is closed first
};

}  // namespace

std::unique_ptr<ExchangeEnd> make_zeromq_end(RankGroup& group, bool copies_out) {
  return std::make_unique<ZeroMqEnd>(group, copies_out);
}

}  // namespace syncopate::bench
