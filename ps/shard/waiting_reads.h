// The reads of one bucket that its consistency rule does not allow yet. They are sorted by what
// they wait for, so that a push need not look at reads which still have to wait. Part of
// SharedBucket.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "ps/shard/consistency_rule.h"

namespace syncopate::ps {

// A request that is answered by a copy of the values, with the memory for the copy.
struct Destination {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;  // of the push that the values answer; 0 for a read
  std::uint64_t token = 0;
  AnswerMemory values{};
  std::span<float> read_copy{};  // memory for a second copy, for delay compensation; may be empty
};

// The waiting reads of one bucket. Used by one thread at a time.
class WaitingReads {
 public:
  // Adds a read, which waits until the values include the worker's pushes up to `after`.
  void add(const Destination& read, std::uint64_t after);
  // Makes the next take_due() check this worker's reads again. Called when the rule has advanced
  // the worker's clock.
  void on_advanced(WorkerId worker);
  // Removes the reads that the rule allows now, and appends them to `due` in order of arrival.
  void take_due(const ConsistencyRule& rule, std::vector<Destination>& due);
  // Removes the reads that satisfy `is_void`, and returns them in order of arrival.
  std::vector<Destination> remove_if(const std::function<bool(const Destination&)>& is_void);
  void clear();

 private:
  struct Read {
    std::uint64_t arrival = 0;
    std::uint64_t after = 0;
    Destination destination;
  };
  using Reads = std::vector<Read>;

  std::uint64_t arrivals_ = 0;
  Reads unchecked_;  // reads that may have become due since they were last checked
  std::map<WorkerId, Reads> by_worker_;  // by worker: reads that wait for a push of this worker
  // The reads that wait until the slowest worker has reached a clock, by this clock.
  std::map<std::int64_t, Reads> by_clock_;
};

}  // namespace syncopate::ps
