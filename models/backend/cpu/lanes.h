// Lanes: the threads that share the batch of one replica. oneDNN runs with one thread in each lane,
// so lanes do not compete for the thread pool of OpenMP.
#pragma once

#include <cstdint>
#include <functional>

#include "models/base/thread_team.h"

namespace syncopate {

// A pool of lanes. run() is called by one thread at a time.
class LanePool {
 public:
  // Starts the threads of the lanes. `count` is the number of lanes and includes the caller of
  // run(). Throws UsageError unless 1 <= count <= 1024, or if the system does not start that many
  // threads.
  explicit LanePool(int count);
  int count() const noexcept { return team_.count(); }

  // Calls task(lane) on every lane, lane 0 on the calling thread, and returns when all calls have
  // returned. When a call throws, the other lanes no longer wait at barriers, and run() rethrows
  // the first exception. Denormals are flushed to zero inside the calls.
  void run(const std::function<void(int lane)>& task);

  // A barrier. Called by every lane inside run(); returns when all lanes have called it.
  void barrier() { team_.barrier(); }

 private:
  ThreadTeam team_;
};

// The elements [begin, end) of an array that belong to one lane.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// Divides `count` elements into `parts` contiguous shares of about equal size, which start at
// multiples of `granule`, and returns share `part`.
Share share_of(std::int64_t count, int part, int parts, std::int64_t granule);

}  // namespace syncopate
