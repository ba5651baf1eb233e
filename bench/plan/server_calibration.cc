// Measures how fast the shard of a server applies gradients.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "bench/harness/measure.h"
#include "bench/plan/plan.h"
#include "bench/virtual_clock/timed_buckets.h"
#include "models/base/errors.h"
#include "models/optim/optimizer.h"
#include "ps/shard/shard.h"

namespace syncopate::bench {
namespace {

constexpr int kFirstPushes = 10;  // are not timed
// The learning rate does not change the time of an update. It is small, so that numbers stay
// finite.
constexpr float kPushLearningRate = 1e-3F;
constexpr int kPushes = 400;
constexpr double kMostUpdateSeconds = 0.5;
// Pushes take turns among gradients of this size in all. So most gradients come from memory and not
// from a cache, as in a job of many workers.
constexpr std::int64_t kGradientBytes = std::int64_t{64} << 20;

// One shard and a worker that pushes to it.
class MeasuredServer {
 public:
  MeasuredServer(const ArenaLayout& layout, std::vector<Bucket> buckets, std::int64_t elements)
      : elements_(elements),
        shard_(layout, std::move(buckets), make_optimizer({.name = "sgd"}),
               {.consistency = ps::Consistency::kAsync}, make_host_tensor({elements}, DType::kF32)),
        gradients_(static_cast<std::size_t>(
                       elements * std::max<std::int64_t>(kGradientBytes / (4 * elements), 1)),
                   1e-3F),
        answer_(static_cast<std::size_t>(elements)) {
    shard_.join(0, 1, 0);
  }

  // Pushes one gradient to every bucket. Returns the seconds until all answers are copied.
  double push() {
    const auto turns = gradients_.size() / answer_.size();
    std::span<const float> gradient = std::span<const float>(gradients_)
                                          .subspan(++sequence_ % turns * answer_.size())
                                          .first(answer_.size());
    std::span<float> answer = answer_;
    events_.clear();
    const auto begun = SteadyClock::now();
    for (std::size_t b = 0; b < shard_.buckets().size(); ++b) {
      const Bucket& bucket = shard_.buckets()[b];
      const auto count = static_cast<std::size_t>(bucket.end - bucket.begin);
      shard_.push({.id = {0, 1, sequence_},
                   .bucket = static_cast<BucketId>(b),
                   .learning_rate = kPushLearningRate,
                   .gradient = {.num_elements = static_cast<std::int64_t>(count),
                                .bytes = std::as_bytes(gradient.first(count))},
                   .values = answer.first(count)});
      shard_.work(static_cast<BucketId>(b), events_);
      gradient = gradient.subspan(count);
      answer = answer.subspan(count);
    }
    const double seconds = seconds_since(begun);
    check(events_.size() == 2 * shard_.buckets().size(), "a push is applied and answered at once");
    return seconds;
  }
  std::int64_t bytes() const noexcept { return 4 * elements_; }

 private:
  const std::int64_t elements_;
  ps::Shard shard_;
  std::vector<float> gradients_;
  std::vector<float> answer_;
  std::vector<ps::ShardEvent> events_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

ServerCalibration calibrate_server(const Graph& graph, const ps::Placement& placement) {
  const std::vector<std::int64_t> bytes = served_buckets(graph, placement).bytes_by_server();
  const auto most = std::ranges::max_element(bytes);
  std::vector<Bucket> buckets;
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    if (placement.owner[b] == most - bytes.begin()) buckets.push_back(placement.buckets[b]);
  }
  MeasuredServer server(graph.parameter_layout(), std::move(buckets), *most / 4);
  for (int i = 0; i < kFirstPushes; ++i) server.push();
  std::vector<double> seconds;
  const auto begun = SteadyClock::now();
  while (std::ssize(seconds) < kFirstPushes ||
         (std::ssize(seconds) < kPushes && seconds_since(begun) < kMostUpdateSeconds)) {
    seconds.push_back(server.push());
  }
  return {.bytes = server.bytes(),
          .update_seconds = median(seconds),
          .pushes = static_cast<int>(seconds.size())};
}

}  // namespace syncopate::bench
