#include "worker/input/untrained_samples.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {

UntrainedSamples::UntrainedSamples(std::vector<ps::SampleRange> ranges)
    : ranges_(std::move(ranges)) {
  for (const ps::SampleRange& range : ranges_) ends_.push_back(count() + range.end - range.begin);
}

std::size_t UntrainedSamples::range_of(std::int64_t i) const {
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
}

ps::SampleRange UntrainedSamples::range_at(std::int64_t i) const {
  check(i >= 0 && i < count(), "a sample of the row");
  const std::size_t found = range_of(i);
  ps::SampleRange range = ranges_[found];
  range.begin = range.end - (ends_[found] - i);
  return range;
}

std::vector<ps::SampleRange> UntrainedSamples::without_first(std::int64_t i) const {
  check(i >= 0 && i <= count(), "at most the whole row");
  const std::size_t found = range_of(i);
  std::vector<ps::SampleRange> rest(ranges_.begin() + static_cast<std::ptrdiff_t>(found),
                                    ranges_.end());
  if (!rest.empty()) rest.front() = range_at(i);
  return rest;
}

}  // namespace syncopate
