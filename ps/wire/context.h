// ZeroMQ's context: its I/O threads, and the handles of what lives in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "models/base/unique_handle.h"

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

// One per process side (server, client). Outlives its sockets. Destroying it drops what is unsent
// after a short linger. Thread-safe. Making one sets malloc, of the whole process, to keep what is
// freed.
class Context {
 public:
  // Throws FileError when the system has no descriptors or threads left.
  explicit Context(int io_threads = 1);

  void* get() const noexcept { return context_.get(); }
  // Lingers for a second, buffers a modest number of messages. `type`: ZMQ_ROUTER, ... Throws
  // FileError as the constructor does.
  SocketHandle make_socket(int type);
  // "inproc://7": nobody else in this context has that name.
  std::string unused_name();

 private:
  UniqueHandle<ContextTraits> context_;
  std::atomic<std::uint64_t> names_ = 0;
};

// Throws FileError: "zmq_bind of tcp://...: Too many open files". For calls of ours that can fail
// for lack of something only.
void check_zmq(int result, const std::string& call);
void set_option(const SocketHandle& socket, int option, int value);

}  // namespace syncopate::ps::wire
