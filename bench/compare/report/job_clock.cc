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
  Process& its = process(began_at);
  its.last_line = lines_++;
  its.seconds = std::max(its.seconds, seconds);
}

void JobClock::add_evaluation(double began_at, double seconds) {
  process(began_at).evaluation_seconds += seconds;
}

void JobClock::set_in_step(double began_at, bool in_step) { process(began_at).in_step = in_step; }

std::map<double, double> JobClock::offsets(bool has_kills) const {
  std::map<double, double> offsets;
  double group_began_at = 0.0;  // of those that trained together
  double group_offset = 0.0;
  double reached = 0.0;      // by all before, in seconds of the job
  double stood_still = 0.0;  // all before, for evaluations
  std::size_t last_line = 0;
  for (const Process& its : processes_) {
    // Nobody of before says anything any more: all began again.
    const bool begins_again = offsets.empty() || last_line < its.first_line;
    if (begins_again) {
      group_began_at = its.began_at;
      const double passed = its.began_at - processes_.front().began_at - stood_still;
      group_offset = has_kills ? std::max(0.0, passed) : reached;
    }
    offsets[its.began_at] = group_offset + std::max(0.0, its.began_at - group_began_at);
    reached = std::max(reached, offsets[its.began_at] + its.seconds);
    if (its.in_step) stood_still += its.evaluation_seconds;
    last_line = std::max(last_line, its.last_line);
  }
  return offsets;
}

}  // namespace syncopate::bench
