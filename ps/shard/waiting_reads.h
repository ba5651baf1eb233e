// The reads of one bucket that its consistency rule does not let pass yet, kept by what they wait
// for: a push looks only at the reads that it lets pass. Part of SharedBucket.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "ps/shard/consistency_rule.h"

namespace syncopate::ps {

// The memory for a request that is answered by a copy of the values.
struct Destination {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;  // of the push that the values answer; 0: of a read
  std::uint64_t token = 0;
  AnswerMemory values{};
  std::span<float> read_copy{};  // copy of the values for delay compensation; or empty
};

// Used by one thread at a time.
class WaitingReads {
 public:
  // Adds a read. Its values must include the worker's pushes up to `after`.
  void add(const Destination& read, std::uint64_t after);
  // Called when the rule has advanced the worker's clock.
  void on_advanced(WorkerId worker);
  // Appends the reads that the rule lets pass to `due`, in order of arrival, and removes them.
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
  Reads unchecked_;                         // may have become due since they were last checked
  std::map<WorkerId, Reads> by_worker_;     // wait for a push of the same worker
  std::map<std::int64_t, Reads> by_clock_;  // wait until the slowest worker is at this clock
};

}  // namespace syncopate::ps
