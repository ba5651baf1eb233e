// Checks how much memory and how many threads this process can still get. The limits are checked in
// advance because some libraries cannot report a failure: ZeroMQ ends the process if a thread
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

// If the address space or the data of this process is limited (ulimit -v, -d), makes the process
// use less address space. Also makes the process end with a one-line message and exit code 1 if a
// library aborts or crashes. Does nothing without such a limit. Called once, before the first
// thread starts.
void adapt_to_limited_address_space();

// Tests whether `count` threads can run at the same time while `spare_bytes` of address space are
// reserved. Throws UsageError if they cannot; the message says what `task` needs, which limits
// apply and what to type.
void require_threads(int count, std::size_t spare_bytes, std::string_view task);

// Return a text about the limits on memory or on threads that apply to this process, their use, and
// what to type, such as "the limit on address space is 250 MiB, of which 240 MiB are in use: raise
// it with ulimit -v unlimited".
std::string memory_advice(const std::filesystem::path& root = "/");
std::string thread_advice(const std::filesystem::path& root = "/");

// Returns how much memory this process can still get, in bytes. This is the smallest of: what the
// machine can provide by using free memory, dropping caches and swapping; what the cgroups leave;
// and what the limit on address space leaves. Returns a very large number if unknown.
std::int64_t obtainable_memory(const std::filesystem::path& root = "/");

// Finds out whether the kernel ended a child process for lack of memory. Must be constructed before
// the children start. The children must be in the memory cgroup of this process. One thread only.
class MemoryKills {
 public:
  // root: the root of the file system; tests pass another folder. interval: the least time between
  // two readings by look().
  explicit MemoryKills(std::filesystem::path root = "/",
                       std::chrono::nanoseconds interval = std::chrono::seconds(5));
  // If next_look() has passed, reads the kernel's count of kills and sets next_look(). Called
  // regularly. reason() attributes a kill to a child only until the count has been read twice after
  // the kill, because an older kill has probably ended another process of the cgroup.
  void look();
  const Deadline& next_look() const noexcept { return next_look_; }
  // Called once for each child that was ended by SIGKILL. Returns text such as ", probably by the
  // kernel for want of memory (...)", to be appended to the message about the child. Returns ""
  // unless there was a kill that is not too old (look()) and that reason() has not attributed to
  // another child.
  std::string reason();

 private:
  std::filesystem::path root_;
  std::chrono::nanoseconds interval_;
  Deadline next_look_;
  std::int64_t explained_;  // number of kills that are too old or are attributed to a child
  std::int64_t seen_;       // number of kills at the last look()
};

}  // namespace syncopate
