// Step reports as f32 elements in front of the gradient block. A report is summed together with the
// last bucket, and so reaches all replicas without a message of its own. PeersWait computes from
// the blocked times in the reports how long a replica waited for other replicas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "strategies/variable_store.h"

namespace syncopate {

// The length of the trailer, which holds a step report. The trailer precedes the arena's first
// element in every replica's gradient block; its elements have the arena indices -kTrailerElements
// to -1.
inline constexpr std::int64_t kTrailerElements = 128;

// The largest number of replicas in a sum of trailers. Numbers are split into digits of 14 bits;
// f32 adds such digits without rounding for up to 1,024 replicas.
inline constexpr int kMostReplicasInStep = 1024;

// Writes a report to `trailer`, [kTrailerElements] f32. Counts below 2^42 are exact, the loss is
// exact to 2^-42 and metrics to 2^-28. A loss or metric is read back as not finite if it is
// negative, not finite or too large: from 2^84 on for the loss, from 2^56 on for metrics. In a sum
// of trailers, blocked_seconds is the least value of the summed reports, with an error of up to a
// fifth.
void write_trailer(const StepReport& report, std::span<float> trailer);
// Reads the trailer of one replica, or a sum of trailers. Returns the report, or the sum of the
// reports.
StepReport read_trailer(std::span<const float> trailer);

// Separates the time that a replica waits for other replicas from the time that it waits for bytes.
// In every step, the last replica to join the sum is blocked only while bytes are transferred. If
// another replica is blocked for longer, it spends the difference waiting for the last replica. One
// thread only.
class PeersWait {
 public:
  // Returns how long communication blocked this replica in the last step; the report of the next
  // step carries this time.
  double blocked_seconds() const noexcept { return blocked_; }
  // Ends a step. Adds to waited_seconds() how much longer this replica was blocked in the previous
  // step than the least blocked replica. `exposed_seconds` is CommunicationTimes::exposed_seconds
  // so far. `least_seconds` is the least blocked time of all replicas in the previous step, as this
  // step's reports say. The blocked times of a step are known only in the next step, so
  // waited_seconds() leaves out the last step of a run.
  void end_step(double exposed_seconds, double least_seconds) noexcept {
    waited_ += std::max(0.0, blocked_ - least_seconds);
    blocked_ = exposed_seconds - exposed_before_;
    exposed_before_ = exposed_seconds;
  }
  // Returns how many seconds this replica has waited for other replicas, in all steps but the last.
  double waited_seconds() const noexcept { return waited_; }

 private:
  double exposed_before_ = 0.0;
  double blocked_ = 0.0;
  double waited_ = 0.0;
};

}  // namespace syncopate
