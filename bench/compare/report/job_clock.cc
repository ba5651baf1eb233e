#include "bench/compare/report/job_clock.h"

#include <algorithm>

namespace syncopate::bench {

JobClock::Process& JobClock::process(double began_at) {
  const auto found = std::ranges::find(processes_, began_at, &Process::began_at);
  if (found != processes_.end()) return *found;
  processes_.push_back({.began_at = began_at, .first_line = lines_, .last_line = lines_});
  return processes_.back();
}

void JobClock::add(double began_at, double seconds) {
  Process& from = process(began_at);
  from.last_line = lines_++;
  from.seconds = std::max(from.seconds, seconds);
}

void JobClock::add_evaluation(double began_at, double seconds) {
  process(began_at).evaluation_seconds += seconds;
}

void JobClock::set_synchronous(double began_at, bool is_synchronous) {
  process(began_at).is_synchronous = is_synchronous;
}

std::map<double, double> JobClock::offsets(bool has_kills) const {
  std::map<double, double> offsets;
  double group_began_at = 0.0;  // wall clock at the start of the processes that train together
  double group_offset = 0.0;
  double reached = 0.0;  // the job's training time, in seconds, when the earlier processes ended
  double paused = 0.0;   // the time that evaluations paused all earlier processes
  std::size_t last_line = 0;
  for (const Process& one : processes_) {
    // All earlier processes wrote their last line before this one began: the job was started again.
    const bool begins_again = offsets.empty() || last_line < one.first_line;
    if (begins_again) {
      group_began_at = one.began_at;
      const double passed = one.began_at - processes_.front().began_at - paused;
      group_offset = has_kills ? std::max(0.0, passed) : reached;
    }
    offsets[one.began_at] = group_offset + std::max(0.0, one.began_at - group_began_at);
    reached = std::max(reached, offsets[one.began_at] + one.seconds);
    if (one.is_synchronous) paused += one.evaluation_seconds;
    last_line = std::max(last_line, one.last_line);
  }
  return offsets;
}

}  // namespace syncopate::bench
