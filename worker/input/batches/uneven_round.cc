#include "worker/input/batches/uneven_round.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/input/batches/batch_plan.h"

namespace syncopate {
namespace {

// Sorts ranges and joins those that are adjacent.
std::vector<ps::SampleRange> joined(std::vector<ps::SampleRange> ranges) {
  std::ranges::sort(
      ranges, {}, [](const ps::SampleRange& range) { return std::pair(range.epoch, range.begin); });
  std::vector<ps::SampleRange> result;
  for (const ps::SampleRange& range : ranges) {
    const bool continues =
        !result.empty() && result.back().epoch == range.epoch && result.back().end == range.begin;
    if (continues) {
      result.back().end = range.end;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

}  // namespace

ps::DataPosition position_after_round(std::int64_t dataset_size, std::int64_t global_batch,
                                      const ps::DataPosition& start,
                                      std::span<const std::int64_t> steps) {
  const std::int64_t most = *std::ranges::max_element(steps);
  std::vector<ps::SampleRange> lacking;
  for (std::size_t replica = 0; replica < steps.size(); ++replica) {
    const InputShard shard{
        .first = static_cast<int>(replica), .count = 1, .total = static_cast<int>(steps.size())};
    const BatchPlan plan(dataset_size, {.batch_size = global_batch, .shard = shard}, start);
    for (std::int64_t step = steps[replica]; step < most; ++step) {
      const PlannedBatch planned = plan.batch(step);
      for (std::int64_t i = planned.begin; i < planned.end;) {
        const ps::SampleRange range = plan.range_at(planned, i);
        lacking.push_back(range);
        i += range.end - range.begin;
      }
    }
  }
  const BatchPlan whole(dataset_size, {.batch_size = global_batch}, start);
  ps::DataPosition position = whole.batch(most).position;
  std::ranges::copy(position.untrained, std::back_inserter(lacking));
  position.untrained = joined(std::move(lacking));
  return position;
}

}  // namespace syncopate
