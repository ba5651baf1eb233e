// The queue of events in virtual time. Events are taken in the order of time, then worker, then
// addition, so that a run is equal on every machine.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <queue>
#include <utility>

namespace syncopate::bench {

// The time since training began. It has whole nanoseconds, so that sums do not depend on the order
// of additions.
using VirtualTime = std::chrono::nanoseconds;

inline double seconds_of(VirtualTime time) { return static_cast<double>(time.count()) * 1e-9; }
inline VirtualTime virtual_time(double seconds) { return VirtualTime(std::llround(seconds * 1e9)); }

// A queue of events. One thread only.
template <typename Event>
class EventQueue {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  VirtualTime now() const noexcept { return now_; }  // the time of the last event taken

  // Adds an event at the time `at`, which must not be before now().
  void add(VirtualTime at, int worker, Event event) {
    heap_.push({at, worker, added_++, std::move(event)});
  }
  Event take() {
    Entry entry = heap_.top();
    heap_.pop();
    now_ = entry.at;
    return std::move(entry.event);
  }

 private:
  struct Entry {
    VirtualTime at{0};
    int worker = 0;
    std::uint64_t order = 0;
    Event event;
    bool operator<(const Entry& other) const noexcept {  // std::priority_queue pops the largest
      if (at != other.at) return at > other.at;
      if (worker != other.worker) return worker > other.worker;
      return order > other.order;
    }
  };

  std::priority_queue<Entry> heap_;
  VirtualTime now_{0};
  std::uint64_t added_ = 0;
};

}  // namespace syncopate::bench
