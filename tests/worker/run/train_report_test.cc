// Tests the messages of a run at its end, and its exit code.
#include "worker/run/train_report.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "tests/support/contains.h"

namespace syncopate {
namespace {

class NotedLines final : public ProgressDisplay {
 public:
  void update(const ProgressState& /*state*/) override {}
  void update(const ActivityState& /*state*/) override {}
  void note(const std::string& line) override { lines.push_back(line); }
  void finish() override {}
  std::vector<std::string> lines;
};

TrainOutcome stopped() {
  TrainOutcome outcome;
  outcome.progress.at.step = 12;
  outcome.stopped_by = "SIGTERM";
  return outcome;
}

TEST(AStoppedRun, IsToBeQueuedAgainWithItsCheckpoint) {
  NotedLines display;
  TrainOutcome outcome = stopped();
  outcome.checkpoint = "/there/checkpoint-12";
  EXPECT_EQ(report_stop(outcome, display), 75);
  EXPECT_EQ(display.lines.at(0),
            "stopped by SIGTERM after step 12; saved /there/checkpoint-12; --resume goes on from "
            "there");
}

TEST(AStoppedRun, IsToBeQueuedAgainWithTheCheckpointOfAnotherWorker) {
  NotedLines display;
  TrainOutcome outcome = stopped();
  outcome.saved_by_another = true;
  EXPECT_EQ(report_stop(outcome, display), 75);
  EXPECT_EQ(display.lines.at(0),
            "stopped by SIGTERM after step 12; another worker has saved a checkpoint; --resume "
            "goes on from there");
}

TEST(AStoppedRun, WithoutACheckpointHasFailed) {
  NotedLines display;
  EXPECT_EQ(report_stop(stopped(), display), 1);
}

TEST(AResult, HasTheStalenessOfTheJob) {
  Summary summary{.replicas = 2, .seconds = 2.0, .staleness_mean = 1.0, .staleness_max = 2};
  std::ostringstream synchronous;
  print_result({}, summary, {}, synchronous);
  EXPECT_FALSE(contains(synchronous.str(), "staleness"));

  summary.staleness = {{0, ps::StalenessHistogram::of({0, 2}, 2.0, 1)},
                       {1, ps::StalenessHistogram::of({1, 0, 1}, 2.0, 2)}};
  std::ostringstream apart;
  print_result({}, summary, {}, apart);
  EXPECT_TRUE(contains(
      apart.str(), "staleness       mean 1.00, max 2 over 4 bucket pushes; by worker 1.00 1.00\n"));
}

}  // namespace
}  // namespace syncopate
