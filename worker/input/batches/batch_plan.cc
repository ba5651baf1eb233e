#include "worker/input/batches/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
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

namespace {

// The largest batch size; with this bound, products of counts stay below 2^63.
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 31;
constexpr int kMostPrefetch = 1 << 16;
constexpr int kMostReplicas = 1 << 20;

void check_options(std::int64_t dataset_size, const InputOptions& options) {
  const auto wrong = [](const std::string& what, std::int64_t found, const std::string& expected) {
    throw UsageError(fmt::format("{} is {}; expected {}", what, found, expected));
  };
  if (dataset_size <= 0) throw UsageError("the dataset is empty; expected one sample or more");
  if (options.batch_size <= 0) wrong("batch size", options.batch_size, "1 or more");
  if (options.batch_size > kLargestBatch) wrong("batch size", options.batch_size, "at most 2^31");
  if (options.threads < 1) wrong("the number of input threads", options.threads, "1 or more");
  if (options.prefetch < 0 || options.prefetch > kMostPrefetch) {
    wrong("prefetch", options.prefetch, fmt::format("0 to {}", kMostPrefetch));
  }
  const InputShard& shard = options.shard;
  if (shard.total < 1 || shard.total > kMostReplicas) {
    wrong("the number of replicas", shard.total, "1 to 1048576");
  }
  if (shard.first < 0 || shard.count < 1 || shard.first > shard.total - shard.count) {
    throw UsageError(fmt::format("the input shard is replicas {} to {}; expected some of 0 to {}",
                                 shard.first, shard.first + shard.count - 1, shard.total - 1));
  }
  if (options.drop_remainder && options.batch_size > dataset_size) {
    throw UsageError(
        fmt::format("a batch of {} samples over {} replica(s) is larger than the data set of {}; "
                    "use a smaller batch size",
                    options.batch_size, shard.total, dataset_size));
  }
}

bool in_order(const ps::SampleRange& a, const ps::SampleRange& b) {
  return std::pair(a.epoch, a.begin) < std::pair(b.epoch, b.begin);
}

// Checks that a data position fits the data set, and sorts its skipped ranges.
void check_position(ps::DataPosition& position, std::int64_t dataset_size) {
  const auto wrong = [&](const std::string& what) {
    throw UsageError(
        fmt::format("the data position (epoch {}, sample {}{}) does not fit a data set of {} "
                    "samples; was the run started on other data?",
                    position.epoch, position.offset, what, dataset_size));
  };
  if (position.epoch < 0 || position.offset < 0 || position.offset > dataset_size) wrong("");
  std::vector<ps::SampleRange>& ranges = position.untrained;
  std::sort(ranges.begin(), ranges.end(), in_order);
  ps::SampleRange last;
  for (const ps::SampleRange& range : ranges) {
    const std::string name =
        fmt::format(", untrained {} to {} of epoch {}", range.begin, range.end, range.epoch);
    const std::int64_t end = range.epoch == position.epoch ? position.offset : dataset_size;
    if (range.epoch < 0 || range.epoch > position.epoch) wrong(name);
    if (range.begin < 0 || range.begin >= range.end || range.end > end) wrong(name);
    if (range.epoch == last.epoch && range.begin < last.end) wrong(name + " a second time");
    last = range;
  }
}

}  // namespace

BatchPlan::BatchPlan(std::int64_t dataset_size, const InputOptions& options, ps::DataPosition start)
    : dataset_size_(dataset_size),
      global_batch_(options.batch_size),
      drop_remainder_(options.drop_remainder),
      shard_(options.shard) {
  check_options(dataset_size, options);
  check_position(start, dataset_size);
  rests_ = rests_of(start, dataset_size);
  Rest& last = rests_.back();
  if (batches_in(last) == 0) last = {.epoch = last.epoch + 1, .offset = 0, .untrained = {}};
}

std::vector<BatchPlan::Rest> BatchPlan::rests_of(const ps::DataPosition& start,
                                                 std::int64_t dataset_size) {
  std::vector<Rest> rests;
  const std::vector<ps::SampleRange>& ranges = start.untrained;
  for (auto begin = ranges.begin(); begin != ranges.end();) {
    const std::int64_t epoch = begin->epoch;
    const auto end = std::find_if(
        begin, ranges.end(), [&](const ps::SampleRange& range) { return range.epoch != epoch; });
    rests.push_back({epoch, epoch == start.epoch ? start.offset : dataset_size,
                     UntrainedSamples({begin, end})});
    begin = end;
  }
  if (rests.empty() || rests.back().epoch != start.epoch) {
    rests.push_back({start.epoch, start.offset, {}});
  }
  return rests;
}

std::int64_t BatchPlan::batches_in(std::int64_t samples) const noexcept {
  return drop_remainder_ ? samples / global_batch_ : (samples + global_batch_ - 1) / global_batch_;
}

std::int64_t BatchPlan::batches_in(const Rest& rest) const noexcept {
  return batches_in(dataset_size_ - rest.begin());
}

std::int64_t BatchPlan::batches_before(std::int64_t epoch) const noexcept {
  std::int64_t batches = 0;
  for (const Rest& rest : rests_) {
    if (rest.epoch < epoch) batches += batches_in(rest);
  }
  const std::int64_t whole_epochs = epoch - rests_.back().epoch - 1;
  return batches + std::max<std::int64_t>(whole_epochs, 0) * batches_per_epoch();
}

PlannedBatch BatchPlan::batch(std::int64_t sequence) const {
  for (auto rest = rests_.begin(); rest != rests_.end(); ++rest) {
    const std::int64_t batches = batches_in(*rest);
    if (sequence < batches) {
      const std::int64_t begin = rest->begin() + sequence * global_batch_;
      return cut(rest->epoch, begin, position_in(rest, begin));
    }
    sequence -= batches;
  }
  const std::int64_t epoch = rests_.back().epoch + 1 + sequence / batches_per_epoch();
  const std::int64_t begin = sequence % batches_per_epoch() * global_batch_;
  return cut(epoch, begin, {epoch, begin, {}});
}

PlannedBatch BatchPlan::cut(std::int64_t epoch, std::int64_t begin,
                            ps::DataPosition position) const {
  PlannedBatch planned;
  planned.position = std::move(position);
  planned.epoch = epoch;
  planned.global_count = std::min(global_batch_, dataset_size_ - begin);
  const BatchShare share = share_of(planned.global_count);
  planned.begin = begin + share.begin;
  planned.end = begin + share.end;
  return planned;
}

ps::DataPosition BatchPlan::position_in(std::vector<Rest>::const_iterator rest,
                                        std::int64_t begin) const {
  const Rest& last = rests_.back();
  ps::DataPosition position{last.epoch, last.offset, {}};
  if (&*rest == &last) position.offset = std::max(begin, last.offset);
  // Adds the skipped ranges that earlier batches left: of the epoch `rest`, then of later epochs.
  std::int64_t taken = std::min(begin - rest->begin(), rest->untrained.count());
  for (; rest != rests_.end(); ++rest, taken = 0) {
    for (const ps::SampleRange& range : rest->untrained.without_first(taken)) {
      position.untrained.push_back(range);
    }
  }
  return position;
}

ps::SampleRange BatchPlan::range_at(const PlannedBatch& planned, std::int64_t i) const {
  for (const Rest& rest : rests_) {
    if (rest.epoch != planned.epoch || i >= rest.offset) continue;
    ps::SampleRange range = rest.untrained.range_at(i - rest.begin());
    range.end = std::min(range.end, range.begin + planned.end - i);
    return range;
  }
  return {planned.epoch, i, planned.end};
}

BatchShare BatchPlan::share_of(std::int64_t samples) const noexcept {
  return {share_of_replica(samples, shard_.first, shard_.total).begin,
          share_of_replica(samples, shard_.first + shard_.count - 1, shard_.total).end};
}

std::int64_t BatchPlan::most_samples() const noexcept {
  const std::int64_t share = share_of_replica(global_batch_, 0, shard_.total).end;
  return std::min(share * shard_.count, global_batch_);
}

}  // namespace syncopate
