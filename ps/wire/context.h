// The ZeroMQ context, which owns ZeroMQ's I/O threads; functions for the frames of messages; and
// the conversion of ZeroMQ's errors to exceptions. The types of contexts, sockets and frames are
// cppzmq's (zmq.hpp).
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

// A ZeroMQ context. A task has one for data and one for control messages. The context must outlive
// its sockets. Its destructor waits up to a second for unsent messages and then drops them.
// Thread-safe. The constructor changes malloc's settings for the whole process, so that freed
// memory is kept for later frames.
class Context {
 public:
  // Makes a context with this number of I/O threads, among which ZeroMQ divides the connections.
  // Throws FileError if the system has no descriptors left. Throws UsageError if the system starts
  // no threads.
  explicit Context(int io_threads = 1);

  // Returns a socket that buffers 64 messages per peer and, when closed, tries for a second to send
  // unsent messages. Throws FileError if no descriptors are left.
  zmq::socket_t make_socket(zmq::socket_type type);
  // Returns an inproc endpoint, such as "inproc://7", that is unique in this context.
  std::string unused_name();

 private:
  zmq::context_t context_;
  std::atomic<std::uint64_t> names_ = 0;
};

// Returns how many I/O threads serve a shard's data on a machine with this number of CPUs: half as
// many as CPUs, at least 1 and at most 4. A thread moves about 3 GB/s. The other CPUs are left for
// updates and training.
int io_threads_for(int cpus) noexcept;

// Returns a frame that owns a copy of the bytes.
zmq::message_t copied_frame(std::span<const std::byte> bytes);
// Returns a frame that borrows `bytes`. The bytes must not change until `release` is called. A
// thread of ZeroMQ calls `release`; for a frame that is never sent, the thread that destroys the
// frame calls it. `release` must not throw.
zmq::message_t borrowed_frame(std::span<const std::byte> bytes, std::function<void()> release);
// Returns the bytes of a frame; empty after the frame was sent. The span becomes invalid when a
// short frame is moved, because its bytes are stored in the frame object.
std::span<const std::byte> bytes_in(const zmq::message_t& frame) noexcept;

// Throws the exception for a failed call of ZeroMQ: std::bad_alloc if memory is exhausted,
// otherwise FileError, such as "zmq_bind: Too many open files". `call` is the name of the ZeroMQ
// function.
[[noreturn]] void throw_error_of(std::string_view call, const zmq::error_t& error);

// Runs the function `calls`, and runs it again if a signal has interrupted it. The ZeroMQ functions
// that it calls must fail for no other reason than a lack of resources. `name` names the calls in
// the error that throw_error_of() throws.
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

// Sets an option of a socket. Throws FileError, which has the option's number in zmq.h.
template <int kOption, typename Stored, bool kIsBool, typename Value>
void set_option(zmq::socket_ref socket,
                zmq::sockopt::integral_option<kOption, Stored, kIsBool> option, Value value) {
  zmq_call("zmq_setsockopt of option " + std::to_string(kOption),
           [&] { socket.set(option, value); });
}

// Returns an option of a socket. Throws FileError.
template <int kOption, typename Stored, bool kIsBool>
Stored get_option(const auto& socket,
                  zmq::sockopt::integral_option<kOption, Stored, kIsBool> option) {
  return zmq_call("zmq_getsockopt", [&] { return socket.get(option); });
}

}  // namespace syncopate::ps::wire
