#include "ps/wire/context.h"

#include <fmt/format.h>
#include <malloc.h>
#include <zmq.h>

#include <cerrno>

#include "models/base/errors.h"

namespace syncopate::ps::wire {
namespace {

// How long a closed ZeroMQ socket still sends its last messages, in milliseconds.
constexpr int kLingerMs = 1000;
// Messages that ZeroMQ buffers per peer and direction. Credit (PROTOCOL.md) bounds the bytes.
constexpr int kBufferedMessages = 64;

// ZeroMQ allocates memory for each large frame. Kept after free(), the pages need no page faults
// for the next message, which cost more than the copy. Source: mallopt(3); 32 MiB is the largest
// threshold that mallopt accepts.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace

void ContextTraits::close(Type context) noexcept {
  while (zmq_ctx_term(context) != 0 && errno == EINTR) {
  }
}

void SocketTraits::close(Type socket) noexcept { zmq_close(socket); }

void check_zmq(int result, const std::string& call) {
  if (result < 0) throw FileError(fmt::format("{}: {}", call, zmq_strerror(errno)));
}

void set_option(const SocketHandle& socket, int option, int value) {
  check_zmq(zmq_setsockopt(socket.get(), option, &value, sizeof value),
            fmt::format("zmq_setsockopt {}", option));
}

Context::Context(int io_threads) : context_(zmq_ctx_new()) {
  if (!context_) check_zmq(-1, "zmq_ctx_new");
  keep_freed_memory();
  check_zmq(zmq_ctx_set(context_.get(), ZMQ_IO_THREADS, io_threads), "zmq_ctx_set");
}

SocketHandle Context::make_socket(int type) {
  SocketHandle socket(zmq_socket(context_.get(), type));
  if (!socket) check_zmq(-1, "zmq_socket");
  set_option(socket, ZMQ_LINGER, kLingerMs);
  set_option(socket, ZMQ_SNDHWM, kBufferedMessages);
  set_option(socket, ZMQ_RCVHWM, kBufferedMessages);
  return socket;
}

std::string Context::unused_name() { return fmt::format("inproc://{}", names_.fetch_add(1)); }

}  // namespace syncopate::ps::wire
