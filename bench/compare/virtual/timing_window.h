// What is counted of a simulated job: from one of its updates to a later one, in ten stretches, so
// that neither how it begins nor how it ends is in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/compare/virtual/event_queue.h"
#include "bench/compare/virtual/job_lines.h"
#include "bench/compare/virtual/timing.h"
#include "ps/shard/staleness.h"

namespace syncopate::bench {

// One thread only.
class TimingWindow {
 public:
  // Counts `updates` of them after the first `warm_up`.
  TimingWindow(std::int64_t warm_up, std::int64_t updates);

  bool is_open() const noexcept { return done_ >= warm_up_; }
  bool is_over() const noexcept { return done_ >= warm_up_ + updates_; }
  // An update was made. accounts: of all workers, so far.
  void update(VirtualTime at, std::span<const WorkerAccount> accounts);
  void stale(std::uint64_t versions) {
    if (is_open()) staleness_.add(versions);
  }
  // Once it is over.
  TimingResult result() const;

 private:
  const std::int64_t warm_up_;
  const std::int64_t updates_;  // a multiple of the number of stretches
  std::int64_t done_ = 0;
  std::vector<VirtualTime> marks_;  // where stretches begin and end
  WorkerAccount begin_;             // of all workers together
  WorkerAccount end_;
  ps::StalenessHistogram staleness_;
};

}  // namespace syncopate::bench
