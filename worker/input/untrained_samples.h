// Samples of one epoch that were passed over and are still to be trained: ranges of its order, laid
// end to end in one row. For BatchPlan.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/coordinator/data_position.h"

namespace syncopate {

// Immutable, thread-safe.
class UntrainedSamples {
 public:
  UntrainedSamples() = default;
  // Of one epoch, in ascending order; none is empty, none overlaps another.
  explicit UntrainedSamples(std::vector<ps::SampleRange> ranges);

  std::int64_t count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  // From sample `i` of the row on, as far as it is one range of the epoch's order. i in [0, count).
  ps::SampleRange range_at(std::int64_t i) const;
  // The ranges without the row's first `i` samples, i in [0, count].
  std::vector<ps::SampleRange> without_first(std::int64_t i) const;

 private:
  std::size_t range_of(std::int64_t i) const;  // ranges_.size() for i = count

  std::vector<ps::SampleRange> ranges_;
  std::vector<std::int64_t> ends_;  // of each range in the row
};

}  // namespace syncopate
