// Tests of the search for hyperparameters, on results that are computed from the point.
#include "bench/compare/tuning_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace syncopate::bench {
namespace {

using Result = std::function<TuningTrial(const TuningRun&)>;

// Returns a result with a time to the target that is shortest at the rate `best` and doubles with
// each position away from it. Too large rates never reach the target.
Result shortest_at(int best, int largest = 99) {
  return [=](const TuningRun& run) {
    const int distance = std::abs(run.point.rate - best);
    const bool is_stable = run.point.rate <= largest;
    return TuningTrial{.point = run.point,
                       .has_reached = is_stable,
                       .seconds = std::exp2(distance),
                       .accuracy = is_stable ? 0.9 : std::numeric_limits<double>::quiet_NaN()};
  };
}

std::vector<TuningTrial> searched(const TuningSpace& space, const Result& result) {
  std::vector<TuningTrial> trials;
  for (std::vector<TuningRun> next = next_runs(space, trials); !next.empty();
       next = next_runs(space, trials)) {
    for (const TuningRun& run : next) trials.push_back(result(run));
  }
  return trials;
}

TEST(TuningSearch, FindsTheBestRateOfTheGrid) {
  const TuningSpace space;
  for (int best = -1; best <= 1; ++best) {
    const auto trials = searched(space, shortest_at(best));
    const TuningChoice choice = choice_of(space, trials);
    EXPECT_EQ(choice.point.rate, best);
    EXPECT_GE(choice.runs, 3);
    EXPECT_FALSE(choice.is_at_border);
  }
}

TEST(TuningSearch, KnowsThePointsOfItsFirstGrid) {
  TuningSpace space;
  space.batch = {.first = -1, .last = 1, .least = -6, .most = 6};
  EXPECT_TRUE(is_in_first_grid(space, {.rate = -2, .batch = 1}));
  EXPECT_FALSE(is_in_first_grid(space, {.rate = 3}));
  EXPECT_FALSE(is_in_first_grid(space, {.momentum = 1}));
  EXPECT_FALSE(is_in_first_grid(space, {.batch = -2}));
}

TEST(TuningSearch, GoesBeyondTheGridWhereTheBestRateIsAtItsBorder) {
  const TuningSpace space;
  for (const int best : {-4, 4}) {
    const TuningChoice choice = choice_of(space, searched(space, shortest_at(best)));
    EXPECT_EQ(choice.point.rate, best);
    EXPECT_FALSE(choice.is_at_border);
  }
  const TuningChoice far = choice_of(space, searched(space, shortest_at(-9)));
  EXPECT_EQ(far.point.rate, -5) << "the other runs are repetitions";
  EXPECT_TRUE(far.is_at_border);
}

TEST(TuningSearch, HasTheSameNumberOfRunsWhateverTheResults) {
  TuningSpace space;
  for (int axes = 1; axes <= 3; ++axes) {
    if (axes > 1) space.momentum = {.first = 0, .last = 2, .least = 0, .most = 4};
    if (axes > 2) space.batch = {.first = -1, .last = 1, .least = -3, .most = 3};
    for (int best = -9; best <= 9; ++best) {
      EXPECT_EQ(static_cast<int>(searched(space, shortest_at(best, 5)).size()),
                runs_of_search(space));
    }
  }
}

TEST(TuningSearch, RepeatsThePointsThatMayBeBestWithNewSeeds) {
  const TuningSpace space;
  std::vector<TuningTrial> trials;
  std::set<std::pair<TuningPoint, int>> runs;
  const Result result = shortest_at(0);
  for (std::vector<TuningRun> next = next_runs(space, trials); !next.empty();
       next = next_runs(space, trials)) {
    for (const TuningRun& run : next) {
      EXPECT_TRUE(runs.emplace(run.point, run.seed).second) << "each run is trained once";
      EXPECT_LE(std::abs(run.point.rate), run.seed == 0 ? 2 : 1);
      trials.push_back(result(run));
    }
  }
}

// With the first seed the rate 1 is somewhat better, with the others the rate 3, beyond the grid,
// is much better.
TEST(TuningSearch, GoesBeyondTheGridIfOnlyOtherSeedsAreBestAtItsBorder) {
  const TuningSpace space;
  const auto trials = searched(space, [](const TuningRun& run) {
    const int distance =
        run.seed == 0 ? std::abs(run.point.rate - 1) : 4 * std::abs(run.point.rate - 3);
    return TuningTrial{.point = run.point, .has_reached = true, .seconds = std::exp2(distance)};
  });
  std::map<int, int> runs;
  for (const TuningTrial& trial : trials) ++runs[trial.point.rate];
  EXPECT_EQ(choice_of(space, trials).point.rate, 3);
  EXPECT_GE(runs[3], 2) << "the new rate has as many runs as the others";
  EXPECT_EQ(static_cast<int>(trials.size()), runs_of_search(space));
}

TEST(TuningSearch, PrefersRatesThatReachTheTargetToFasterOnesThatOftenMissIt) {
  const TuningSpace space;
  // At the rates 1 and 2 every second run misses the target, at larger rates every run.
  const auto trials = searched(space, [](const TuningRun& run) {
    return TuningTrial{
        .point = run.point,
        .has_reached = run.point.rate < 1 || (run.point.rate < 3 && run.seed % 2 == 0),
        .seconds = std::exp2(-run.point.rate),
        .accuracy = 0.9};
  });
  EXPECT_LT(choice_of(space, trials).point.rate, 1);
}

TEST(TuningSearch, ChoosesTheMostAccurateRateIfNoneReachesTheTarget) {
  const TuningSpace space;
  const auto trials = searched(space, [](const TuningRun& run) {
    return TuningTrial{.point = run.point, .accuracy = 0.5 - 0.1 * std::abs(run.point.rate - 1)};
  });
  EXPECT_EQ(choice_of(space, trials).point.rate, 1);
}

TEST(TuningSearch, DoesNotDependOnTheOrderOfTheResults) {
  const TuningSpace space;
  std::vector<TuningTrial> trials = searched(space, shortest_at(1));
  const TuningPoint point = choice_of(space, trials).point;
  std::ranges::reverse(trials);
  EXPECT_EQ(choice_of(space, trials).point, point);
}

// Returns a result that is best at this rate of the outer step and these steps of a round.
Result shortest_in_rounds(int outer_rate, int sync_every) {
  return [=](const TuningRun& run) {
    const int distance = std::abs(run.point.rate) + std::abs(run.point.outer_rate - outer_rate) +
                         std::abs(run.point.sync_every - sync_every);
    return TuningTrial{.point = run.point, .has_reached = true, .seconds = std::exp2(distance)};
  };
}

TEST(TuningSearch, FindsTheOuterRateAndTheStepsOfARound) {
  TuningSpace space;
  space.outer_rate = {.first = -1, .last = 1, .least = -6, .most = 6};
  space.sync_every = {.first = 0, .last = 3, .least = 0, .most = 3};
  EXPECT_EQ(runs_of_search(space), 2 * 5 * 3 * 4 + 2);
  for (const int outer_rate : {-3, 0, 1}) {
    for (const int sync_every : {0, 2, 3}) {
      const auto trials = searched(space, shortest_in_rounds(outer_rate, sync_every));
      const TuningChoice choice = choice_of(space, trials);
      EXPECT_EQ(choice.point.outer_rate, outer_rate);
      EXPECT_EQ(choice.point.sync_every, sync_every);
      EXPECT_FALSE(choice.is_at_border) << "other steps than the given ones are not searched";
    }
  }
}

TEST(TuningSearch, MarksTheFewestAndTheMostStepsOfARoundIfThereAreOthers) {
  TuningSpace space;
  space.sync_every = {.first = 0, .last = 3, .least = 0, .most = 3, .has_more = true};
  const auto is_at_border = [&](int sync_every) {
    const TuningChoice choice =
        choice_of(space, searched(space, shortest_in_rounds(0, sync_every)));
    EXPECT_EQ(choice.point.sync_every, sync_every);
    return choice.is_at_border;
  };
  EXPECT_FALSE(is_at_border(0)) << "no round is shorter than one step";
  EXPECT_FALSE(is_at_border(2));
  EXPECT_TRUE(is_at_border(3));
  space.sync_every.has_less = true;
  EXPECT_TRUE(is_at_border(0));
  EXPECT_EQ(runs_of_search(space), 2 * 5 * 4 + 2) << "the search itself stays the same";
}

TEST(TuningSearch, HasAsManyRunsForAVariantWithFewerPoints) {
  TuningSpace full;
  full.sync_every = {.first = 0, .last = 3, .least = 0, .most = 3};
  TuningSpace without;
  without.runs = runs_of_search(full);
  const auto trials = searched(without, shortest_at(1));
  EXPECT_EQ(static_cast<int>(trials.size()), 2 * 5 * 4 + 2);
  EXPECT_EQ(choice_of(without, trials).point.rate, 1);
}

}  // namespace
}  // namespace syncopate::bench
