#include "bench/ps/peers/zeromq_peer.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <zmq.hpp>

#include "bench/harness/bench_commands.h"
#include "bench/ps/peers/exchange.h"
#include "models/base/errors.h"
#include "ps/wire/context.h"

namespace syncopate::bench {
namespace {

using ps::wire::zmq_call;

constexpr std::chrono::seconds kZeroMqTimeout{60};

void release_nothing(void* /*bytes*/, void* /*hint*/) {}

// Connects a DEALER (worker) and a ROUTER (server) over TCP on loopback. Frames have the size of a
// chunk and are sent without a copy. The receiver reads from the frames.
class ZeroMqEnd final : public ExchangeEnd {
 public:
  explicit ZeroMqEnd(RankGroup& group)
      : is_worker_(group.rank() == 0),
        context_(zmq_call("zmq_ctx_new", [] { return zmq::context_t(); })),
        socket_(zmq_call("zmq_socket", [this] { return make_socket(); })) {
    meet(group);
  }

  void prepare(const ExchangeShape& shape) override { chunk_bytes_ = shape.message_bytes; }

  void exchange(std::span<const std::byte> outgoing, const Take& take) override {
    for (std::size_t at = 0; is_worker_ && at < outgoing.size(); at += chunk_bytes_) {
      send(chunk_of(outgoing, at));
    }
    for (std::size_t at = 0; at < outgoing.size(); at += chunk_bytes_) {
      zmq::message_t worker;
      zmq::message_t chunk;
      if (!is_worker_) receive(worker);
      receive(chunk);
      take(at, {chunk.data<std::byte>(), chunk.size()});
      if (is_worker_) continue;
      send(std::move(worker), zmq::send_flags::sndmore);
      send(chunk_of(outgoing, at));
    }
  }

 private:
  zmq::socket_t make_socket() {
    constexpr int kMilliseconds = std::chrono::milliseconds(kZeroMqTimeout).count();
    zmq::socket_t socket(context_,
                         is_worker_ ? zmq::socket_type::dealer : zmq::socket_type::router);
    socket.set(zmq::sockopt::sndhwm, 0);  // no limit: everything sent in an exchange is queued
    socket.set(zmq::sockopt::rcvhwm, 0);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, kMilliseconds);
    socket.set(zmq::sockopt::sndtimeo, kMilliseconds);
    return socket;
  }

  std::span<const std::byte> chunk_of(std::span<const std::byte> bytes, std::size_t at) const {
    return bytes.subspan(at, std::min(chunk_bytes_, bytes.size() - at));
  }

  // Connects the sockets; called by both ranks. The server publishes its port in its row of the
  // group's shared memory, because only rank 0 may share a text.
  void meet(RankGroup& group) {
    const Deadline deadline = Deadline::after(kZeroMqTimeout);
    if (!is_worker_) {
      zmq_call("zmq_bind", [this] { socket_.bind("tcp://127.0.0.1:*"); });
      const std::string endpoint = socket_.get(zmq::sockopt::last_endpoint);
      group.row(group.rank())[0] = std::stod(endpoint.substr(endpoint.rfind(':') + 1));
    }
    group.barrier(deadline);
    if (is_worker_) {
      const auto port = static_cast<int>(group.row(1)[0]);
      zmq_call("zmq_connect", [&] { socket_.connect(fmt::format("tcp://127.0.0.1:{}", port)); });
    }
  }

  // Sends bytes without a copy: they must stay valid until ZeroMQ has sent them.
  void send(std::span<const std::byte> bytes) {
    send({const_cast<std::byte*>(bytes.data()), bytes.size(), release_nothing},
         zmq::send_flags::none);
  }
  void send(zmq::message_t frame, zmq::send_flags flags) {
    if (zmq_call("zmq_msg_send", [&] { return socket_.send(frame, flags); })) return;
    throw PeerError(fmt::format("ZeroMQ: nothing was sent for {} s", kZeroMqTimeout.count()));
  }
  void receive(zmq::message_t& frame) {
    if (zmq_call("zmq_msg_recv", [&] { return socket_.recv(frame); })) return;
    throw PeerError(fmt::format("ZeroMQ: nothing came for {} s", kZeroMqTimeout.count()));
  }

  bool is_worker_;
  std::size_t chunk_bytes_ = 0;
  zmq::context_t context_;
  zmq::socket_t socket_;  // declared after its context, so that it is closed first
};

// Makes malloc keep freed memory; otherwise large frames page-fault again each time.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace

ContestSide zeromq_side(const std::filesystem::path& program) {
  return {.name = std::string(kZeroMqPeer),
          .tcp = true,
          .command = {"env", "LD_PRELOAD=" + reno_shim(program).string(), program.string(),
                      std::string(kPsPeerRank)}};
}

void run_ps_peer_rank(int rank) {
  keep_freed_memory();
  const auto group = make_rank_group(rank, 2, {std::string(kPsPeerRank)});
  ZeroMqEnd end(*group);
  serve_exchanges(*group, end, "ZeroMQ, DEALER and ROUTER, 1 MB frames without a copy, reno");
}

Command declare_ps_peer_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto rank = std::make_shared<int>(0);
  flags.add("--rank", rank.get(), "", {.least = 0, .most = 1});
  return [rank] { run_ps_peer_rank(*rank); };
}

}  // namespace syncopate::bench
