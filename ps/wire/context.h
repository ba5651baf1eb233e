// ZeroMQ's context, which owns its I/O threads, handles for contexts and sockets, and the frames of
// messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "models/base/unique_handle.h"

struct zmq_msg_t;

namespace syncopate::ps::wire {

struct ContextTraits {
  using Type = void*;
  static Type none() noexcept { return nullptr; }
  static void close(Type context) noexcept;
};

struct SocketTraits {
  using Type = void*;
  static Type none() noexcept { return nullptr; }
  static void close(Type socket) noexcept;
};
using SocketHandle = UniqueHandle<SocketTraits>;

// A ZeroMQ context: one per server or client; must outlive its sockets. Its destructor waits up to
// a second for unsent messages and then drops them. Thread-safe. The constructor changes malloc's
// settings for the whole process, so that freed memory is kept for later frames.
class Context {
 public:
  // Makes a context with this number of threads, among which ZeroMQ divides connections. Throws
  // FileError when the system has no descriptors left, and UsageError when it starts no threads.
  explicit Context(int io_threads = 1);

  void* get() const noexcept { return context_.get(); }
  // Returns a socket that lingers for a second and buffers 64 messages per peer. `type`:
  // ZMQ_ROUTER, ZMQ_DEALER, ZMQ_PAIR. Throws FileError when no descriptors are left.
  SocketHandle make_socket(int type);
  // Returns an inproc endpoint, such as "inproc://7", that is unique in this context.
  std::string unused_name();

 private:
  UniqueHandle<ContextTraits> context_;
  std::atomic<std::uint64_t> names_ = 0;
};

// Returns how many I/O threads serve a shard's data on a machine with this number of CPUs. One
// moves about 3 GB/s; the other half of the CPUs is for updates and for training.
int io_threads_for(int cpus) noexcept;

// One frame of a message. A received frame owns memory of ZeroMQ's; a frame to be sent owns a copy
// or borrows its bytes.
class ZmqFrame {
 public:
  ZmqFrame();
  static ZmqFrame copy_of(std::span<const std::byte> bytes);
  // Borrows `bytes`, which must not change until `release` is called: by a thread of ZeroMQ's, or,
  // for a frame that is never sent, by the thread that destroys the frame. `release` must not
  // throw.
  static ZmqFrame borrow(std::span<const std::byte> bytes, std::function<void()> release);
  ZmqFrame(ZmqFrame&& other) noexcept;
  ZmqFrame& operator=(ZmqFrame&& other) noexcept;
  ~ZmqFrame();

  // Returns the frame's bytes: empty after the frame was sent or moved from.
  std::span<const std::byte> bytes() const noexcept;
  zmq_msg_t& content() noexcept { return *content_; }

 private:
  struct Close {
    void operator()(zmq_msg_t* message) const noexcept;
  };
  std::unique_ptr<zmq_msg_t, Close> content_;
};

// Checks the `result` of a ZeroMQ call that can fail only for lack of resources. Throws FileError,
// such as "zmq_bind: Too many open files", when it is negative.
void check_zmq(int result, const std::string& call);
void set_option(const SocketHandle& socket, int option, int value);

}  // namespace syncopate::ps::wire
