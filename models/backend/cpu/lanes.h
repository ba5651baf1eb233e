// The threads that share one replica's batch. Each lane is single-threaded: oneDNN is told to use
// one thread in it, so that lanes never fight over OpenMP's pool.
#pragma once

#include <cstdint>
#include <functional>

#include "models/base/thread_team.h"

namespace syncopate {

// run() from one thread at a time.
class LanePool {
 public:
  // `count` lanes, the caller of run() included. Throws UsageError unless 1 <= count <= 1024 and
  // the system starts that many threads.
  explicit LanePool(int count);
  int count() const noexcept { return team_.count(); }

  // Calls task(lane) on every lane, lane 0 on the caller's thread; returns when all are done. When
  // one throws, the others are released from their barriers and the first exception is rethrown
  // here.
  void run(const std::function<void(int lane)>& task);

  // Inside run(), by every lane: returns when all have arrived.
  void barrier() { team_.barrier(); }

 private:
  ThreadTeam team_;
};

// Elements [begin, end) of `count` that `part` of `parts` works on; borders on multiples of
// `granule`.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Share share_of(std::int64_t count, int part, int parts, std::int64_t granule);

}  // namespace syncopate
