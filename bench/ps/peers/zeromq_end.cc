#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "bench/ps/peers/ends.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr int kZeroMqTimeoutMilliseconds = 60'000;

void release_nothing(void* /*bytes*/, void* /*hint*/) {}

class ZeroMqEnd final : public ExchangeEnd {
 public:
  ZeroMqEnd(RankGroup& group, bool copies_out)
      : is_worker_(group.rank() == 0),
        copies_out_(copies_out && is_worker_),
        socket_(context_, is_worker_ ? zmq::socket_type::dealer : zmq::socket_type::router) {
    socket_.set(zmq::sockopt::sndhwm, 0);  // no limit: everything sent in an exchange is queued
    socket_.set(zmq::sockopt::rcvhwm, 0);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, kZeroMqTimeoutMilliseconds);
    socket_.set(zmq::sockopt::sndtimeo, kZeroMqTimeoutMilliseconds);
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
      zmq::message_t worker;
      zmq::message_t chunk;
      if (!is_worker_) receive(worker);
      receive(chunk);
      hand_on(at, {chunk.data<std::byte>(), chunk.size()}, take);
      if (is_worker_) continue;
      send(std::move(worker), zmq::send_flags::sndmore);
      send(chunk_of(outgoing, at));
    }
  }

 private:
  std::span<const std::byte> chunk_of(std::span<const std::byte> bytes, std::size_t at) const {
    return bytes.subspan(at, std::min(chunk_bytes_, bytes.size() - at));
  }

  // Connects the sockets; called by both ranks. The server publishes its port in its row of the
  // group's shared memory, because only rank 0 may share a text.
  void meet(RankGroup& group) {
    const Deadline deadline =
        Deadline::after(std::chrono::milliseconds(kZeroMqTimeoutMilliseconds));
    if (!is_worker_) {
      socket_.bind("tcp://127.0.0.1:*");
      const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
      group.row(group.rank())[0] = std::stod(endpoint.substr(endpoint.rfind(':') + 1));
    }
    group.barrier(deadline);
    if (is_worker_) {
      socket_.connect("tcp://127.0.0.1:" + std::to_string(static_cast<int>(group.row(1)[0])));
    }
  }

  // Sends bytes without a copy: they must stay valid until ZeroMQ has sent them.
  void send(std::span<const std::byte> bytes) {
    send({const_cast<std::byte*>(bytes.data()), bytes.size(), release_nothing},
         zmq::send_flags::none);
  }
  void send(zmq::message_t frame, zmq::send_flags flags) {
    if (!socket_.send(frame, flags)) throw PeerError("ZeroMQ: nothing was sent for a minute");
  }
  void receive(zmq::message_t& frame) {
    if (!socket_.recv(frame)) throw PeerError("ZeroMQ: nothing came for a minute");
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
  zmq::context_t context_;
  zmq::socket_t socket_;  // declared after its context, so that it is closed first
};

}  // namespace

std::unique_ptr<ExchangeEnd> make_zeromq_end(RankGroup& group, bool copies_out) {
  return std::make_unique<ZeroMqEnd>(group, copies_out);
}

}  // namespace syncopate::bench
