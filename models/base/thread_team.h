// A fixed set of threads that run one task together, many times: the lanes of a replica, or the
// replicas of a process. A waiting thread spins briefly before it sleeps, because the tasks of a
// step follow each other closely.
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

// A team of threads; run() is called by one thread at a time.
class ThreadTeam {
 public:
  // Starts the threads. `count`, the number of threads, includes the caller of run(), so count - 1
  // threads are started. Threads are named "<name>-<member>". Throws UsageError when the system
  // does not start all threads; the message says how many threads were started.
  ThreadTeam(int count, std::string name);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  int count() const noexcept { return count_; }

  // Calls task(member) on every thread of the team, member 0 on the calling thread, and returns
  // when all calls have returned. When a call of task() throws, its thread immediately calls
  // on_failure(exception), and the other members no longer wait at barriers. run() then rethrows
  // the first exception.
  void run(const std::function<void(int member)>& task,
           const std::function<void(std::exception_ptr)>& on_failure = {});

  // A barrier. Called by every member inside run(); returns when all members have called it.
  void barrier();

 private:
  // Released is thrown by barrier() when another member failed, and caught inside run().
  struct Released {};

  void end_threads();
  void member_main(int member, const std::stop_token& stop);
  void run_member(int member) noexcept;

  const int count_;
  const std::string name_;
  const std::function<void(int)>* task_ = nullptr;
  const std::function<void(std::exception_ptr)>* on_failure_ = nullptr;
  std::atomic<std::uint32_t> generation_{0};  // incremented to start a run
  // The number of members, other than member 0, that have not finished.
  std::atomic<std::uint32_t> running_{0};
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};  // incremented when a barrier opens
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // first exception; guarded by failure_mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace syncopate
