// The threads that share one replica's batch. Each lane is single-threaded: oneDNN is told to use
// one thread in it, so that lanes never fight over OpenMP's pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace syncopate {

// run() from one thread at a time.
class LanePool {
 public:
  // `count` lanes, the caller of run() included. Throws UsageError unless 1 <= count <= 1024 and
  // the system starts that many threads.
  explicit LanePool(int count);
  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;
  ~LanePool();

  int count() const noexcept { return count_; }

  // Calls task(lane) on every lane, lane 0 on the caller's thread; returns when all are done. When
  // one throws, the others are released from their barriers and the first exception is rethrown
  // here.
  void run(const std::function<void(int lane)>& task);

  // Inside run(), by every lane: returns when all have arrived.
  void barrier();

 private:
  // Thrown out of barrier() when another lane failed; never leaves run().
  struct LaneReleased {};

  void end_lanes();
  void lane_main(int lane, const std::stop_token& stop);
  void run_lane(int lane) noexcept;

  const int count_;
  const std::function<void(int)>* task_ = nullptr;
  std::atomic<std::uint32_t> generation_{0};  // bumped to start a run
  std::atomic<std::uint32_t> running_{0};     // lanes other than 0 still at work
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};  // bumped when a barrier opens
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // guarded by failure_mutex_
  std::vector<std::jthread> threads_;
};

// Elements [begin, end) of `count` that `part` of `parts` works on; borders on multiples of
// `granule`.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Share share_of(std::int64_t count, int part, int parts, std::int64_t granule);

}  // namespace syncopate
