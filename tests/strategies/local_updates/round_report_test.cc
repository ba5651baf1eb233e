// Tests how the reports of a round are added.
#include "strategies/local_updates/round_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

StepReport step(double loss, std::int64_t samples) {
  StepReport report;
  report.scores.loss = loss;
  report.scores.num_samples = samples;
  return report;
}

// A round of two steps: the first replica trains 3 samples per step, the second 1.
std::vector<RoundReport> two_replicas() {
  std::vector<RoundReport> reports(2);
  add_step(reports[0], step(2.0, 3));
  add_step(reports[0], step(1.0, 3));
  add_step(reports[1], step(6.0, 1));
  add_step(reports[1], step(5.0, 1));
  return reports;
}

TEST(RoundReport, HasTheSumOfTheStepsMeanLosses) {
  const StepReport total = sum_of(two_replicas());
  EXPECT_EQ(total.round_steps, 2);
  EXPECT_EQ(total.scores.num_samples, 8);
  // The means of the two steps are (3 * 2 + 6) / 4 = 3 and (3 * 1 + 5) / 4 = 2.
  EXPECT_EQ(total.scores.loss, 5.0);
}

TEST(RoundReport, WeighsReplicasBySamples) {
  EXPECT_EQ(weight_of(two_replicas(), 0), 0.75F);
  EXPECT_EQ(weight_of(two_replicas(), 1), 0.25F);
}

TEST(RoundReport, GivesAReplicaWithoutSamplesNoWeight) {
  std::vector<RoundReport> reports(2);
  add_step(reports[0], step(2.0, 3));
  add_step(reports[1], step(0.0, 0));
  EXPECT_EQ(weight_of(reports, 0), 1.0F);
  EXPECT_EQ(weight_of(reports, 1), 0.0F);
  EXPECT_EQ(sum_of(reports).scores.loss, 2.0);
}

TEST(RoundReport, CountsARepeatedRequestToStopOnce) {
  RoundReport report;
  StepReport asked = step(1.0, 1);
  asked.stops[ps::StopKind::kComplete] = 1;
  add_step(report, asked);
  add_step(report, asked);
  EXPECT_EQ(sum_of(std::vector{report}).stops[ps::StopKind::kComplete], 1);
}

TEST(RoundReport, NamesTheReplicaWithOtherVariables) {
  std::vector<RoundReport> reports(3);
  for (RoundReport& report : reports) report.hash = 7;
  EXPECT_NO_THROW(require_equal_hashes(reports));
  reports[2].hash = 8;
  EXPECT_TRUE(contains(message_of<PeerError>([&] { require_equal_hashes(reports); }),
                       "replica 2 and replica 0 have different variables"));
}

TEST(RoundReport, SaysThatOneReplicaKeepsItsOwnMean) {
  EXPECT_FALSE(needs_displacements({}, 1));
  EXPECT_TRUE(needs_displacements({}, 2));
  EXPECT_TRUE(needs_displacements({.learning_rate = 0.5}, 1));
  EXPECT_TRUE(needs_displacements({.momentum = 0.5}, 1));
}

}  // namespace
}  // namespace syncopate
