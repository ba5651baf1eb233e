// ZeroMQ's context, which owns its I/O threads, the frames of messages, and what becomes of
// ZeroMQ's errors. Contexts, sockets and frames are cppzmq's (zmq.hpp).
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <zmq.hpp>

namespace syncopate::ps::wire {

// A ZeroMQ context: one per server or client; must outlive its sockets. Its destructor waits up to
// a second for unsent messages and then drops them. Thread-safe. The constructor changes malloc's
// settings for the whole process, so that freed memory is kept for later frames.
class Context {
 public:
  // Makes a context with this number of threads, among which ZeroMQ divides connections. Throws
  // FileError when the system has no descriptors left, and UsageError when it starts no threads.
  explicit Context(int io_threads = 1);

  // Returns a socket that lingers for a second and buffers 64 messages per peer. Throws FileError
  // when no descriptors are left.
  zmq::socket_t make_socket(zmq::socket_type type);
  // Returns an inproc endpoint, such as "inproc://7", that is unique in this context.
  std::string unused_name();

 private:
  zmq::context_t context_;
  std::atomic<std::uint64_t> names_ = 0;
};

// Returns how many I/O threads serve a shard's data on a machine with this number of CPUs. One
// moves about 3 GB/s; the other half of the CPUs is for updates and for training.
int io_threads_for(int cpus) noexcept;

// Returns a frame that owns a copy of the bytes.
zmq::message_t copied_frame(std::span<const std::byte> bytes);
// Returns a frame that borrows `bytes`, which must not change until `release` is called: by a
// thread of ZeroMQ's, or, for a frame that is never sent, by the thread that destroys the frame.
// `release` must not throw.
zmq::message_t borrowed_frame(std::span<const std::byte> bytes, std::function<void()> release);
// Returns the bytes of a frame: none after it was sent. Moving a short frame moves its bytes.
std::span<const std::byte> bytes_in(const zmq::message_t& frame) noexcept;

// Throws FileError, such as "zmq_bind: Too many open files", or std::bad_alloc.
[[noreturn]] void throw_error_of(std::string_view call, const zmq::error_t& error);

// Makes calls of ZeroMQ that can fail only for lack of resources, and makes them again if a signal
// has interrupted them. `name` names them in the error that throw_error_of() throws.
template <typename Calls>
auto zmq_call(std::string_view name, const Calls& calls) {
  for (;;) {
    try {
      return calls();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw_error_of(name, error);
    }
  }
}

}  // namespace syncopate::ps::wire
