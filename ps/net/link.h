// What joins a task to the others, where it is made slow on purpose: by link_forwarder.h in real
// processes, by the virtual clock of bench/compare in simulated ones.
#pragma once

namespace syncopate {

struct Link {
  double delay_seconds = 0.0;     // one way
  double bytes_per_second = 0.0;  // of one task's link, each way; 0: without limit
  bool is_plain() const noexcept { return delay_seconds == 0.0 && bytes_per_second == 0.0; }
};

}  // namespace syncopate
