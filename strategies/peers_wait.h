// Tells waiting for other replicas from waiting for bytes, where replicas keep step: who came last
// to a step's sum stood only as long as its bytes took, and what another stood longer was for that
// one.
#pragma once

#include <algorithm>

namespace syncopate {

// One replica's, one thread only. What was least is known a step later, with the next reports: the
// last step of a run is not counted.
class PeersWait {
 public:
  // Of the last step that ended, to be reported with the next: seconds that this replica stood.
  double stood_seconds() const noexcept { return stood_; }
  // A step ended. exposed_seconds: CommunicationTimes::exposed_seconds so far. least_seconds: the
  // least that any replica stood in the step before, as all reported it.
  void end_step(double exposed_seconds, double least_seconds) noexcept {
    waited_ += std::max(0.0, stood_ - least_seconds);
    stood_ = exposed_seconds - exposed_before_;
    exposed_before_ = exposed_seconds;
  }
  double waited_seconds() const noexcept { return waited_; }

 private:
  double exposed_before_ = 0.0;
  double stood_ = 0.0;
  double waited_ = 0.0;
};

}  // namespace syncopate
