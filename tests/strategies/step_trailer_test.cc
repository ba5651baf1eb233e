// Tests that step reports which are summed as f32 arrive exactly, and that PeersWait separates
// waiting for replicas from waiting for bytes.
#include "strategies/step_trailer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace syncopate {
namespace {

using Trailer = std::vector<float>;

Trailer trailer_of(const StepReport& report) {
  Trailer trailer(static_cast<std::size_t>(kTrailerElements), -1.0F);
  write_trailer(report, trailer);
  return trailer;
}

std::vector<Trailer> trailers_of(const std::vector<StepReport>& reports) {
  std::vector<Trailer> trailers;
  trailers.reserve(reports.size());
  for (const StepReport& report : reports) trailers.push_back(trailer_of(report));
  return trailers;
}

// Sums trailers (step reports as f32 elements) in rank order, as this program's collectives do.
Trailer sum_in_rank_order(const std::vector<Trailer>& trailers) {
  Trailer sum = trailers.front();
  for (std::size_t r = 1; r < trailers.size(); ++r) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += trailers[r][i];
  }
  return sum;
}

// Sums trailers (step reports as f32 elements) of neighbours first, as MPI and NCCL may.
Trailer sum_as_tree(std::vector<Trailer> trailers) {
  for (std::size_t step = 1; step < trailers.size(); step *= 2) {
    for (std::size_t r = 0; r + step < trailers.size(); r += 2 * step) {
      for (std::size_t i = 0; i < trailers[r].size(); ++i) trailers[r][i] += trailers[r + step][i];
    }
  }
  return trailers.front();
}

StepReport report_of(double loss) {
  return {.scores = {.loss = loss, .num_samples = 5, .num_bad = 2, .metrics = {3, 0, 2.5, 1}},
          .stops = {{0, 1, 0, 0}}};
}

class Trailers : public testing::TestWithParam<int> {
 protected:
  // Draws counts in [0, 2^31], with both ends, and losses that are multiples of 2^-40.
  std::vector<StepReport> random_reports() const {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    std::mt19937_64 random(17);
    std::uniform_int_distribution<std::int64_t> count(0, kMost);
    // The losses are below 4, so that the exact sum of 1000 losses fits into the 53 bits of a
    // double.
    std::uniform_int_distribution<std::int64_t> loss(0, (std::int64_t{4} << 40) - 1);
    std::vector<StepReport> reports(static_cast<std::size_t>(GetParam()));
    for (StepReport& report : reports) {
      report.scores = {.loss = std::ldexp(static_cast<double>(loss(random)), -40),
                       .num_samples = count(random),
                       .num_bad = count(random)};
      for (double& metric : report.scores.metrics) metric = static_cast<double>(count(random));
      // Metrics need not be counts; this one is a multiple of 2^-8.
      report.scores.metrics.back() = std::ldexp(report.scores.metrics.back(), -8);
      for (int& stop : report.stops.by_kind) stop = static_cast<int>(count(random) % 2);
    }
    reports.front().scores.metrics[0] = 0.0;
    reports.back().scores.num_samples = kMost;
    return reports;
  }

  static void expect_exact(const StepReport& found, const std::vector<StepReport>& reports) {
    StepReport sum = reports.front();
    for (std::size_t r = 1; r < reports.size(); ++r) sum += reports[r];
    EXPECT_EQ(found.scores.loss, sum.scores.loss);
    EXPECT_EQ(found.scores.metrics, sum.scores.metrics);
    EXPECT_EQ(found.scores.num_samples, sum.scores.num_samples);
    EXPECT_EQ(found.scores.num_bad, sum.scores.num_bad);
    EXPECT_EQ(found.stops, sum.stops);
  }
};

TEST_P(Trailers, AreSummedExactlyInAnyOrderOfAdditions) {
  const std::vector<StepReport> reports = random_reports();
  const std::vector<Trailer> trailers = trailers_of(reports);
  expect_exact(read_trailer(sum_in_rank_order(trailers)), reports);
  expect_exact(read_trailer(sum_as_tree(trailers)), reports);
}

TEST_P(Trailers, HoldTheLargestCountOfEveryReplica) {
  // All bits are set, so every digit into which the trailer splits a count is at its largest.
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  const auto n = static_cast<std::size_t>(GetParam());
  const std::vector<StepReport> reports(
      n, {.scores = {.loss = 0.0, .num_samples = kMost, .metrics = {kMost, kMost, kMost, kMost}},
          .stops = {{1, 1, 1, 1}}});
  expect_exact(read_trailer(sum_in_rank_order(trailers_of(reports))), reports);
}

TEST_P(Trailers, KeepTheLossToTwoToTheMinusForty) {
  std::mt19937_64 random(23);
  std::uniform_real_distribution<double> any_loss(0.0, 8.0);
  std::vector<StepReport> reports;
  double sum = 0.0;
  for (int r = 0; r < GetParam(); ++r) {
    reports.push_back(report_of(any_loss(random) / GetParam()));
    sum += reports.back().scores.loss;
  }
  const double found = read_trailer(sum_in_rank_order(trailers_of(reports))).scores.loss;
  // The tolerance: each replica's loss may be off by 2^-40, and 2^-49 is the rounding error of an
  // expected sum of up to 8.
  EXPECT_NEAR(found, sum, GetParam() * (std::ldexp(1.0, -40) + std::ldexp(1.0, -49)));
}

TEST_P(Trailers, HoldSquaredErrorsOfLargeTargets) {
  StepReport report = report_of(0x1p80);
  report.scores.metrics = {0x1p54, 0.0, 0.0, 0.0};
  const std::vector<StepReport> reports(static_cast<std::size_t>(GetParam()), report);
  expect_exact(read_trailer(sum_in_rank_order(trailers_of(reports))), reports);
}

TEST_P(Trailers, HaveNoFiniteLossIfOneReplicaHasNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double broken : {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity}) {
    const auto n = static_cast<std::size_t>(GetParam());
    for (const std::size_t replica : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<StepReport> reports(n, report_of(0.5));
      reports[replica].scores.loss = broken;
      const StepReport found = read_trailer(sum_in_rank_order(trailers_of(reports)));
      EXPECT_FALSE(std::isfinite(found.scores.loss)) << broken << " of replica " << replica;
      EXPECT_EQ(found.scores.num_samples, 5 * GetParam()) << "the counts must still arrive";
      EXPECT_EQ(found.stops[ps::StopKind::kSigterm], GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Trailers, testing::Values(1, 2, 7, 64, 1000, kMostReplicasInStep),
                         [](const auto& parameters) {
                           return std::to_string(parameters.param) + "Replicas" +
                                  (parameters.index == 5 ? "TheMost" : "");
                         });

TEST(ATrailer, ReportsALossThatIsTooLargeAsNotFinite) {
  for (const double loss : {std::ldexp(1.0, 28), 1e30, 1e300}) {
    const double found = read_trailer(trailer_of(report_of(loss))).scores.loss;
    EXPECT_TRUE(found == loss || !std::isfinite(found)) << loss << " arrived as " << found;
  }
}

TEST(ATrailer, OverwritesAllElementsOfAnOlderOne) {
  Trailer trailer = trailer_of({.scores = {.loss = std::numeric_limits<double>::quiet_NaN(),
                                           .num_samples = std::int64_t{1} << 31,
                                           .metrics = {1e9, 0.1, 1e9, 0.1}},
                                .stops = {{1, 1, 1, 1, 1}},
                                .blocked_seconds = 3.0});
  write_trailer({}, trailer);
  EXPECT_EQ(trailer, trailer_of({}));
}

TEST(ATrailer, KeepsTheLeastBlockedTimeOfAllReplicas) {
  for (const double least : {2e-6, 1e-3, 0.5, 12.0}) {
    const std::vector<StepReport> reports = {{.blocked_seconds = 1.5 * least},
                                             {.blocked_seconds = least},
                                             {.blocked_seconds = 100.0 * least}};
    const double found = read_trailer(sum_as_tree(trailers_of(reports))).blocked_seconds;
    EXPECT_NEAR(found, least, 0.2 * least);
  }
  const double longest = read_trailer(trailer_of({.blocked_seconds = 1e6})).blocked_seconds;
  EXPECT_GT(longest, 10.0) << "longer times fall into the last bin";
}

// The seconds that two replicas are blocked in one step.
struct BlockedSeconds {
  double first = 0.0;
  double second = 0.0;
};

// Two replicas that use PeersWait as the strategies do.
struct TwoReplicas {
  PeersWait first;
  PeersWait second;
  BlockedSeconds exposed;

  void end_step(const BlockedSeconds& step) {
    const double least = std::min(first.blocked_seconds(), second.blocked_seconds());
    exposed.first += step.first;
    exposed.second += step.second;
    first.end_step(exposed.first, least);
    second.end_step(exposed.second, least);
  }
};

TEST(PeersWait, IsTheTimeBlockedLongerThanTheLastReplica) {
  TwoReplicas replicas;
  replicas.end_step({.first = 5.0, .second = 1.0});
  replicas.end_step({.first = 1.0, .second = 3.0});
  replicas.end_step({});  // PeersWait learns the least wait of a step one step later
  EXPECT_DOUBLE_EQ(replicas.first.waited_seconds(), 4.0);
  EXPECT_DOUBLE_EQ(replicas.second.waited_seconds(), 2.0);
}

TEST(PeersWait, IsZeroIfReplicasWaitForBytesOnly) {
  TwoReplicas replicas;
  for (int step = 0; step < 3; ++step) replicas.end_step({.first = 2.0, .second = 2.0});
  EXPECT_DOUBLE_EQ(replicas.first.waited_seconds(), 0.0);
  EXPECT_DOUBLE_EQ(replicas.second.waited_seconds(), 0.0);
}

}  // namespace
}  // namespace syncopate
