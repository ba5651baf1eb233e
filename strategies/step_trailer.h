// Carries step reports between replicas. A report is stored as f32 elements in front of the
// gradient block, so that it is summed together with the last bucket. From the blocked times in the
// reports PeersWait derives how long a replica waited for others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "strategies/variable_store.h"

namespace syncopate {

// Length of the trailer, which precedes the arena's first element in every replica's gradient
// block. Its elements have the arena indices -kTrailerElements to -1.
inline constexpr std::int64_t kTrailerElements = 128;

// The largest number of replicas with trailers that can be summed. Numbers are split into digits of
// 14 bits, which f32 adds without rounding for up to this many replicas.
inline constexpr int kMostReplicasInStep = 1024;

// Writes a report. trailer: [kTrailerElements]. Counts below 2^42 are exact, the loss is exact to
// 2^-42 and metrics to 2^-28. A loss or metric that is negative, not finite or too large (2^84 and
// 2^56) is read back as not finite. A sum of trailers has the least of their blocked_seconds, to
// within a fifth.
void write_trailer(const StepReport& report, std::span<float> trailer);
// Reads the trailer of one replica, or a sum of several. Returns the sum of their reports.
StepReport read_trailer(std::span<const float> trailer);

// Separates the time a replica waits for other replicas from the time it waits for bytes. In every
// step, the last replica to join the sum is blocked only while bytes travel. Any longer time that
// another replica is blocked was spent waiting for that last replica. One thread only.
class PeersWait {
 public:
  // Returns how long this replica was blocked in the last step, to be reported with the next step.
  double blocked_seconds() const noexcept { return blocked_; }
  // Call when a step has ended. exposed_seconds: CommunicationTimes::exposed_seconds so far.
  // least_seconds: the least blocked_seconds of all replicas in the step before, which is known
  // from this step's reports. The last step of a run is therefore not counted.
  void end_step(double exposed_seconds, double least_seconds) noexcept {
    waited_ += std::max(0.0, blocked_ - least_seconds);
    blocked_ = exposed_seconds - exposed_before_;
    exposed_before_ = exposed_seconds;
  }
  // Returns the seconds spent waiting for other replicas, up to the step before the last one.
  double waited_seconds() const noexcept { return waited_; }

 private:
  double exposed_before_ = 0.0;
  double blocked_ = 0.0;
  double waited_ = 0.0;
};

}  // namespace syncopate
