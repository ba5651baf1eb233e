// Tells how much the limits on address space and threads leave to this process. It is checked
// beforehand because some libraries cannot report a lack: ZeroMQ ends the process if a thread
// cannot start.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "models/base/deadline.h"

namespace syncopate {

// Adapts this process to a limit on its address space or data (ulimit -v, -d): it then needs less
// of it, and if a library aborts or crashes, the process ends with one line and exit code 1. Does
// nothing without such a limit. Called once, before the first thread starts.
void adapt_to_limited_address_space();

// Starts `count` threads at once and ends them, with `spare_bytes` of address space in use. Throws
// UsageError if the system refuses: it says what `task` needs, which limits apply and what to type.
void require_threads(int count, std::size_t spare_bytes, std::string_view task);

// Returns the limits that apply to this process, their use and what to type, such as "the limit on
// address space is 250 MiB, of which 240 MiB are in use: raise it with ulimit -v unlimited".
std::string memory_advice(const std::filesystem::path& root = "/");
std::string thread_advice(const std::filesystem::path& root = "/");

// Returns the most memory that this process can still get, in bytes: what the machine has free or
// can drop or swap out, or what its cgroups or its limit on address space leave. Very large when
// unknown.
std::int64_t obtainable_memory(const std::filesystem::path& root = "/");

// Tells whether the kernel ended a child process for want of memory. One per group of children in
// the memory cgroup of this process, made before they start. One thread only.
class MemoryKills {
 public:
  // The files of the system are below `root`. `interval`: the time between two looks.
  explicit MemoryKills(std::filesystem::path root = "/",
                       std::chrono::nanoseconds interval = std::chrono::seconds(5));
  // Called regularly, at next_look() or later. A kill that was counted two looks ago explains no
  // later end of a child: the kernel may have ended another process of the cgroup.
  void look();
  const Deadline& next_look() const noexcept { return next_look_; }
  // Called once for each child that SIGKILL ended. Returns text such as ", probably by the kernel
  // for want of memory (...)", which follows how the child ended; "" without a recent kill.
  std::string reason();

 private:
  std::filesystem::path root_;
  std::chrono::nanoseconds interval_;
  Deadline next_look_;
  std::int64_t explained_;  // kills that were counted before the last look, or explain a child
  std::int64_t seen_;       // kills that were counted at the last look
};

}  // namespace syncopate
