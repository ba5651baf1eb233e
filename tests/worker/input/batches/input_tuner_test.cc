// Tests the choice of readers and batches ahead under a virtual clock: a pipeline whose reader and
// consumer have given costs, and which does what the tuner says.
#include "worker/input/batches/input_tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include "models/base/random.h"

namespace syncopate {
namespace {

// A cost in seconds as a function of the time and of the number of the batch.
using Cost = std::function<double(double now, std::int64_t batch)>;

Cost constant(double seconds) {
  return [=](double, std::int64_t) { return seconds; };
}

// A cost that varies with a deviation of 0.3 of its mean (log-normal).
Cost noisy(double mean, std::uint64_t seed) {
  return [=](double, std::int64_t batch) {
    const RandomStream draws(seed, 1);
    const auto index = static_cast<std::uint64_t>(batch);
    const double radius =
        std::sqrt(-2.0 * std::log1p(-static_cast<double>(draws.uniform(2 * index))));
    const double angle = 6.283185307 * static_cast<double>(draws.uniform(2 * index + 1));
    constexpr double kSigma = 0.3;
    return mean * std::exp(kSigma * radius * std::cos(angle) - kSigma * kSigma / 2.0);
  };
}

// What the consumer saw in a part of the virtual time.
struct Seen {
  double wait_fraction = 0.0;
  int least_readers = 1 << 20;
  int most_readers = 0;
};

class VirtualPipeline {
 public:
  VirtualPipeline(const InputTunerOptions& options, Cost batch, Cost step)
      : tuner_(options), batch_(std::move(batch)), step_(std::move(step)) {}

  // Trains until the virtual time `end`.
  Seen run_until(double end) {
    Seen seen;
    double waited = 0.0;
    const double begun = now_;
    while (now_ < end) {
      const double step = step_(now_, taken_);
      const double asked = now_ + step;
      finish_until(asked);
      while (!finished_.contains(taken_)) finish_until(in_progress_.begin()->first);
      finished_.erase(taken_++);
      tuner_.add_take(step, now_ - asked, std::exchange(are_blocked_, false));
      waited += now_ - asked;
      claim();
      seen.least_readers = std::min(seen.least_readers, tuner_.readers());
      seen.most_readers = std::max(seen.most_readers, tuner_.readers());
    }
    seen.wait_fraction = waited / (now_ - begun);
    return seen;
  }
  const InputTuner& tuner() const { return tuner_; }

 private:
  struct Work {
    std::int64_t batch = 0;
    double cost = 0.0;
  };

  // Lets the readers work until the virtual time `time`.
  void finish_until(double time) {
    claim();
    while (!in_progress_.empty() && in_progress_.begin()->first <= time) {
      const auto next = in_progress_.begin();
      now_ = std::max(now_, next->first);
      tuner_.add_batch(next->second.cost);
      finished_.insert(next->second.batch);
      in_progress_.erase(next);
      claim();
    }
    now_ = std::max(now_, time);
  }
  void claim() {
    while (static_cast<int>(in_progress_.size()) < tuner_.readers() &&
           claimed_ < taken_ + tuner_.ahead()) {
      const double cost = batch_(now_, claimed_);
      in_progress_.emplace(now_ + cost, Work{claimed_++, cost});
    }
    if (static_cast<int>(in_progress_.size()) < tuner_.readers()) are_blocked_ = true;
  }

  InputTuner tuner_;
  Cost batch_;
  Cost step_;
  double now_ = 0.0;
  std::int64_t claimed_ = 0;
  std::int64_t taken_ = 0;
  std::multimap<double, Work> in_progress_;  // by the time at which they end
  std::set<std::int64_t> finished_;
  bool are_blocked_ = false;  // readers, for lack of a slot
};

InputTunerOptions automatic(int cpus, int lanes = 0) {
  return {.tunes_readers = true,
          .tunes_ahead = true,
          .most_readers = cpus,
          .most_ahead = 4 * cpus + 16,
          .cpus = cpus,
          .lanes = lanes};
}

struct Costs {
  double batch = 0.0;
  double step = 0.0;
  int readers() const { return static_cast<int>(std::ceil(batch / step - 1e-9)); }
};
void PrintTo(const Costs& costs, std::ostream* out) {
  *out << costs.batch << " s per batch, " << costs.step << " s per step";
}

class ATunedPipeline : public testing::TestWithParam<Costs> {};

TEST_P(ATunedPipeline, WaitsLessThanTwoPercentAfterFiveSeconds) {
  const Costs costs = GetParam();
  VirtualPipeline pipeline(automatic(64), constant(costs.batch), constant(costs.step));
  pipeline.run_until(5.0);
  const Seen seen = pipeline.run_until(20.0);
  EXPECT_LT(seen.wait_fraction, 0.02);
  EXPECT_GE(seen.least_readers, costs.readers() - 1);
  EXPECT_LE(seen.most_readers, costs.readers() + 1);
}

TEST_P(ATunedPipeline, DoesSoWithNoisyCosts) {
  const Costs costs = GetParam();
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    VirtualPipeline pipeline(automatic(64), noisy(costs.batch, seed), noisy(costs.step, seed + 10));
    pipeline.run_until(5.0);
    const Seen seen = pipeline.run_until(20.0);
    EXPECT_LT(seen.wait_fraction, 0.02) << seed;
    // The mean of 64 costs is known to about 6 %.
    EXPECT_GE(seen.least_readers, std::floor(0.8 * costs.readers()) - 1) << seed;
    EXPECT_LE(seen.most_readers, std::ceil(1.2 * costs.readers()) + 1) << seed;
  }
}

TEST_P(ATunedPipeline, FollowsCostsThatChange) {
  const Costs costs = GetParam();
  for (const double factor : {3.0, 1.0 / 3.0}) {
    const Costs later{.batch = costs.batch * factor, .step = costs.step};
    const Cost changing = [&](double now, std::int64_t) {
      return now < 10.0 ? costs.batch : later.batch;
    };
    VirtualPipeline pipeline(automatic(128), changing, constant(costs.step));
    pipeline.run_until(15.0);
    const Seen seen = pipeline.run_until(30.0);
    EXPECT_LT(seen.wait_fraction, 0.02) << factor;
    EXPECT_GE(seen.least_readers, later.readers() - 1) << factor;
    EXPECT_LE(seen.most_readers, later.readers() + 1) << factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ATunedPipeline,
                         testing::Values(Costs{0.005, 0.02}, Costs{0.02, 0.02}, Costs{0.1, 0.02},
                                         Costs{0.3, 0.1}, Costs{0.25, 0.1}, Costs{0.5, 0.02},
                                         Costs{0.04, 0.002}));

TEST(RecentCost, ForgetsOldValuesThatComeAmongNewOnes) {
  RecentCost cost;
  for (int i = 0; i < 100; ++i) cost.add(0.3);
  for (const double late : {0.1, 0.1, 0.3, 0.1, 0.3, 0.3, 0.1}) cost.add(late);
  for (int i = 0; i < 40; ++i) cost.add(0.1);
  EXPECT_NEAR(cost.mean(), 0.1, 1e-12);
}

TEST(RecentCost, LeavesOutPausesUnlessSeveralComeInARow) {
  RecentCost cost;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(cost.add_unless_pause(0.02));
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(cost.add_unless_pause(3.0));
  EXPECT_NEAR(cost.mean(), 0.02, 1e-12);
  EXPECT_TRUE(cost.add_unless_pause(3.0));
  EXPECT_EQ(cost.mean(), 3.0);
}

TEST(InputTuner, NeedsNoMoreThanOneReaderForAFastInput) {
  VirtualPipeline pipeline(automatic(64), constant(0.001), constant(0.02));
  const Seen seen = pipeline.run_until(20.0);
  EXPECT_EQ(seen.most_readers, 1);
  EXPECT_EQ(pipeline.tuner().ahead(), 2);
}

TEST(InputTuner, StaysWithinOneCpu) {
  for (const int lanes : {0, 1}) {
    VirtualPipeline pipeline(automatic(1, lanes), constant(0.1), constant(0.02));
    const Seen seen = pipeline.run_until(20.0);
    EXPECT_EQ(seen.most_readers, 1) << lanes;
    EXPECT_NEAR(seen.wait_fraction, 0.8, 0.01);
  }
}

TEST(InputTuner, LeavesTheConsumerTheCpusThatItUses) {
  // The step takes all of the time: the readers have the 4 CPUs that the lanes leave.
  VirtualPipeline balanced(automatic(8, 4), constant(0.1), constant(0.02));
  balanced.run_until(5.0);
  const Seen seen = balanced.run_until(20.0);
  EXPECT_GE(seen.least_readers, 4);
  EXPECT_LE(seen.most_readers, 5) << "a sixth would take a CPU from the lanes";
  // Ten times as slow an input could use 80 readers. The lanes work for a sixth of the time.
  VirtualPipeline bound(automatic(8, 4), constant(0.8), constant(0.02));
  bound.run_until(10.0);
  const Seen bound_seen = bound.run_until(60.0);
  EXPECT_GE(bound_seen.least_readers, 7);
  EXPECT_LE(bound_seen.most_readers, 8);
}

TEST(InputTuner, DoesNotTakeAnEvaluationForASlowStep) {
  const Cost step = [](double, std::int64_t batch) { return batch % 100 == 99 ? 3.0 : 0.02; };
  VirtualPipeline pipeline(automatic(16), constant(0.1), step);
  pipeline.run_until(10.0);
  const Seen seen = pipeline.run_until(60.0);
  EXPECT_GE(seen.least_readers, 5);
  EXPECT_LE(seen.most_readers, 6);
}

TEST(InputTuner, PreparesMoreBatchesAheadOnlyAsFarAsMemoryAllows) {
  // Each 20th batch takes as long as the 19 before it.
  const Cost batch = [](double, std::int64_t number) { return number % 20 == 19 ? 0.15 : 0.008; };
  InputTunerOptions options = automatic(16);
  options.tunes_readers = false;
  VirtualPipeline free(options, batch, constant(0.02));
  free.run_until(20.0);
  EXPECT_GE(free.tuner().ahead(), 8);
  EXPECT_LT(free.run_until(40.0).wait_fraction, 0.02);
  options.most_ahead = 4;
  VirtualPipeline limited(options, batch, constant(0.02));
  limited.run_until(20.0);
  EXPECT_EQ(limited.tuner().ahead(), 4);
}

TEST(InputTuner, KeepsWhatIsFixed) {
  InputTunerOptions options = automatic(16);
  options.tunes_ahead = false;
  options.ahead = 3;
  VirtualPipeline pipeline(options, constant(0.2), constant(0.02));
  const Seen seen = pipeline.run_until(20.0);
  EXPECT_EQ(seen.most_readers, 3) << "more readers than batches ahead would sleep";
  EXPECT_EQ(pipeline.tuner().ahead(), 3);
  options = automatic(16);
  options.tunes_readers = false;
  options.readers = 2;
  VirtualPipeline two(options, constant(0.2), constant(0.02));
  EXPECT_EQ(two.run_until(20.0).most_readers, 2);
}

TEST(InputTuner, HasNoMoreReadersThanTheSystemStarts) {
  InputTuner tuner(automatic(16));
  tuner.limit_readers(3);
  for (int i = 0; i < 20; ++i) {
    tuner.add_batch(0.2);
    tuner.add_take(0.01, 0.1, false);
  }
  EXPECT_EQ(tuner.readers(), 3);
}

}  // namespace
}  // namespace syncopate
