// A fixed set of threads that do one task together again and again: the lanes of a replica, the
// replicas of a process. Waiting threads spin for a moment before they sleep, since a step's tasks
// follow closely.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace syncopate {

// run() from one thread at a time.
class ThreadTeam {
 public:
  // `count` members, the caller of run() included; threads are named "<name>-<member>". Throws
  // UsageError when the system starts fewer, naming how many.
  ThreadTeam(int count, std::string name);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  int count() const noexcept { return count_; }

  // Calls task(member) on every thread, member 0 on the caller's; returns when all are done. When
  // one throws, `on_failure` is called at once on its thread, the others are released from their
  // barriers, and the first exception is rethrown here.
  void run(const std::function<void(int member)>& task,
           const std::function<void(std::exception_ptr)>& on_failure = {});

  // Inside run(), by every member: returns when all have arrived.
  void barrier();

 private:
  // Thrown out of barrier() when another member failed; never leaves run().
  struct Released {};

  void end_threads();
  void member_main(int member, const std::stop_token& stop);
  void run_member(int member) noexcept;

  const int count_;
  const std::string name_;
  const std::function<void(int)>* task_ = nullptr;
  const std::function<void(std::exception_ptr)>* on_failure_ = nullptr;
  std::atomic<std::uint32_t> generation_{0};  // bumped to start a run
  std::atomic<std::uint32_t> running_{0};     // members other than 0 still at work
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};  // bumped when a barrier opens
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // guarded by failure_mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace syncopate
