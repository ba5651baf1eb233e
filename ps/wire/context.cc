#include "ps/wire/context.h"

#include <fmt/format.h>
#include <malloc.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "models/base/errors.h"
#include "models/base/open_files.h"
#include "models/base/process_limits.h"

namespace syncopate::ps::wire {
namespace {

// How long a closed ZeroMQ socket still sends its last messages, in milliseconds.
constexpr int kLingerMs = 1000;
// Messages that ZeroMQ buffers per peer and direction. Credit (PROTOCOL.md) bounds the bytes.
constexpr int kBufferedMessages = 64;
constexpr int kMostIoThreads = 4;
// Address space that is left for ZeroMQ's queues: it ends the process where they cannot grow.
constexpr std::size_t kBufferBytes = std::size_t{16} << 20;

// ZeroMQ allocates memory for each large frame. Kept after free(), the pages need no page faults
// for the next message, which cost more than the copy. Source: mallopt(3); 32 MiB is the largest
// threshold that mallopt accepts.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

struct BorrowedBytes {
  std::function<void()> release;
  // `is_written` is set after `release` and checked before the call of `release`. ZeroMQ passes
  // frames between threads in a way that ThreadSanitizer does not recognise as synchronisation.
  std::atomic<bool> is_written = false;
};

void give_back(void* /*bytes*/, void* hint) {
  const std::unique_ptr<BorrowedBytes> borrowed(static_cast<BorrowedBytes*>(hint));
  if (borrowed->is_written.load(std::memory_order_acquire) && borrowed->release) {
    borrowed->release();
  }
}

}  // namespace

void ContextTraits::close(Type context) noexcept {
  while (zmq_ctx_term(context) != 0 && errno == EINTR) {
  }
}

void SocketTraits::close(Type socket) noexcept { zmq_close(socket); }

void check_zmq(int result, const std::string& call) {
  if (result >= 0) return;
  const int error = errno;
  throw FileError(fmt::format("{}: {}{}", call, zmq_strerror(error), open_files_advice(error)));
}

void set_option(const SocketHandle& socket, int option, int value) {
  check_zmq(zmq_setsockopt(socket.get(), option, &value, sizeof value),
            fmt::format("zmq_setsockopt {}", option));
}

Context::Context(int io_threads) : context_(zmq_ctx_new()) {
  if (!context_) check_zmq(-1, "zmq_ctx_new");
  keep_freed_memory();
  check_zmq(zmq_ctx_set(context_.get(), ZMQ_IO_THREADS, io_threads), "zmq_ctx_set");
  // By default a context has at most 1,023 sockets; a worker of 340 shards needs more. Every socket
  // takes at least one descriptor.
  const std::int64_t most = zmq_ctx_get(context_.get(), ZMQ_SOCKET_LIMIT);
  check_zmq(zmq_ctx_set(context_.get(), ZMQ_MAX_SOCKETS,
                        static_cast<int>(std::min(most, open_file_limit()))),
            "zmq_ctx_set ZMQ_MAX_SOCKETS");
  // ZeroMQ ends the process where it cannot start a thread. The first socket starts its I/O threads
  // and two more.
  require_threads(io_threads + 2, kBufferBytes, "ZeroMQ");
  const SocketHandle first(zmq_socket(context_.get(), ZMQ_PAIR));
  if (!first) check_zmq(-1, "zmq_socket");
}

SocketHandle Context::make_socket(int type) {
  SocketHandle socket(zmq_socket(context_.get(), type));
  if (!socket) check_zmq(-1, "zmq_socket");
  set_option(socket, ZMQ_LINGER, kLingerMs);
  set_option(socket, ZMQ_SNDHWM, kBufferedMessages);
  set_option(socket, ZMQ_RCVHWM, kBufferedMessages);
  return socket;
}

int io_threads_for(int cpus) noexcept { return std::clamp(cpus / 2, 1, kMostIoThreads); }

std::string Context::unused_name() { return fmt::format("inproc://{}", names_.fetch_add(1)); }

ZmqFrame::ZmqFrame() : content_(new zmq_msg_t) { zmq_msg_init(content_.get()); }
ZmqFrame::ZmqFrame(ZmqFrame&& other) noexcept = default;
ZmqFrame& ZmqFrame::operator=(ZmqFrame&& other) noexcept = default;
ZmqFrame::~ZmqFrame() = default;

// A ZeroMQ message that was sent is empty, and closing it does nothing.
void ZmqFrame::Close::operator()(zmq_msg_t* message) const noexcept {
  zmq_msg_close(message);
  delete message;
}

ZmqFrame ZmqFrame::copy_of(std::span<const std::byte> bytes) {
  ZmqFrame frame;
  if (zmq_msg_init_size(&frame.content(), bytes.size()) != 0) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(zmq_msg_data(&frame.content()), bytes.data(), bytes.size());
  return frame;
}

ZmqFrame ZmqFrame::borrow(std::span<const std::byte> bytes, std::function<void()> release) {
  ZmqFrame frame;
  auto borrowed = std::make_unique<BorrowedBytes>();
  borrowed->release = std::move(release);
  borrowed->is_written.store(true, std::memory_order_release);
  // ZeroMQ's interface takes mutable bytes of a frame but does not write to them.
  auto* data = const_cast<std::byte*>(bytes.data());
  if (zmq_msg_init_data(&frame.content(), data, bytes.size(), give_back, borrowed.get()) != 0) {
    zmq_msg_init(&frame.content());
    throw std::bad_alloc();
  }
  (void)borrowed.release();  // give_back() owns the bytes now
  return frame;
}

std::span<const std::byte> ZmqFrame::bytes() const noexcept {
  if (!content_) return {};
  return {static_cast<const std::byte*>(zmq_msg_data(content_.get())),
          zmq_msg_size(content_.get())};
}

}  // namespace syncopate::ps::wire
