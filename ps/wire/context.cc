#include "ps/wire/context.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
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

Context::Context(int io_threads)
    : context_(zmq_call("zmq_ctx_new", [] { return zmq::context_t(); })) {
  keep_freed_memory();
  zmq_call("zmq_ctx_set", [&] {
    context_.set(zmq::ctxopt::io_threads, io_threads);
    // By default a context has at most 1,023 sockets; a worker of 340 shards needs more. Every
    // socket takes at least one descriptor.
    const std::int64_t most = context_.get(zmq::ctxopt::socket_limit);
    context_.set(zmq::ctxopt::max_sockets, static_cast<int>(std::min(most, open_file_limit())));
  });
  // ZeroMQ ends the process where it cannot start a thread. The first socket starts its I/O threads
  // and two more.
  require_threads(io_threads + 2, kBufferBytes, "ZeroMQ");
  make_socket(zmq::socket_type::pair);
}

zmq::socket_t Context::make_socket(zmq::socket_type type) {
  return zmq_call("zmq_socket", [&] {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::sndhwm, kBufferedMessages);
    socket.set(zmq::sockopt::rcvhwm, kBufferedMessages);
    return socket;
  });
}

int io_threads_for(int cpus) noexcept { return std::clamp(cpus / 2, 1, kMostIoThreads); }

std::string Context::unused_name() { return fmt::format("inproc://{}", names_.fetch_add(1)); }

zmq::message_t copied_frame(std::span<const std::byte> bytes) {
  return zmq_call("zmq_msg_init_size", [&] { return zmq::message_t(bytes.data(), bytes.size()); });
}

zmq::message_t borrowed_frame(std::span<const std::byte> bytes, std::function<void()> release) {
  auto borrowed = std::make_unique<BorrowedBytes>();
  borrowed->release = std::move(release);
  borrowed->is_written.store(true, std::memory_order_release);
  return zmq_call("zmq_msg_init_data", [&] {
    // ZeroMQ's interface takes mutable bytes of a frame but does not write to them.
    zmq::message_t frame(const_cast<std::byte*>(bytes.data()), bytes.size(), give_back,
                         borrowed.get());
    (void)borrowed.release();  // give_back() owns the bytes now
    return frame;
  });
}

std::span<const std::byte> bytes_in(const zmq::message_t& frame) noexcept {
  return {frame.data<std::byte>(), frame.size()};
}

void throw_error_of(std::string_view call, const zmq::error_t& error) {
  if (error.num() == ENOMEM) throw std::bad_alloc();
  throw FileError(fmt::format("{}: {}{}", call, error.what(), open_files_advice(error.num())));
}

}  // namespace syncopate::ps::wire
