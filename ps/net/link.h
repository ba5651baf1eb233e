// The speed of a task's network link where it is limited for an experiment: by link_forwarder.h
// between real processes, by the virtual clock of bench/compare between simulated ones.
#pragma once

namespace syncopate {

struct Link {
  double delay_seconds = 0.0;     // one way, in seconds
  double bytes_per_second = 0.0;  // of the link, in each direction; 0: no limit
  bool is_plain() const noexcept { return delay_seconds == 0.0 && bytes_per_second == 0.0; }
};

}  // namespace syncopate
