// Tests a request to stop that reaches an asynchronous job.
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"
#include "tests/worker/train/asynchronous_case.h"

namespace syncopate {
namespace {

constexpr auto kSigterm = ps::StopKind::kSigterm;

class AsynchronousStop : public testing::Test, protected ScriptedRun {};

TEST_F(AsynchronousStop, IsPassedOnAndTheLeasedBatchesAreTrained) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  int polls = 0;
  run_.stop = [&]() -> std::optional<std::string_view> {
    return ++polls == 3 ? std::optional<std::string_view>("SIGTERM") : std::nullopt;
  };
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    job.assignment_when_stopped = Assignment{
        .snapshot_id = 9, .writes_checkpoint = true, .is_final = true, .stopped_by = kSigterm};
  });
  EXPECT_EQ(job_->events, strings({"step 0:0", "step 0:16", "stop 1", "step 0:32",
                                   "read 9 with slots", "done 9"}));
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 3));
  EXPECT_FALSE(outcome.test);
  EXPECT_FALSE(outcome.saved_by_another);
}

TEST_F(AsynchronousStop, OfAnotherTaskIsReportedByTheAssignedWorker) {
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    job.assignments_at_end = {
        {.snapshot_id = 1, .is_final = true, .stopped_by = ps::StopKind::kSigusr1}};
  });
  EXPECT_EQ(outcome.stopped_by, "SIGUSR1");
  EXPECT_FALSE(outcome.checkpoint);
}

TEST_F(AsynchronousStop, OfAWorkerWithoutAssignmentIsSavedByAnotherWorker) {
  const TemporaryFolder folder;
  run_.stop = [] { return "SIGTERM"; };
  TrainOutcome outcome = train([](ScriptedJob&) {});
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_FALSE(outcome.saved_by_another) << "there is no checkpoint folder";

  run_.options.checkpoint_dir = folder.path();
  outcome = train([](ScriptedJob&) {});
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_FALSE(outcome.checkpoint);
  EXPECT_TRUE(outcome.saved_by_another);
  EXPECT_EQ(outcome.progress.at.step, 1);
}

TEST_F(AsynchronousStop, EndsAnEvaluation) {
  int polls = 0;
  bool evaluating = false;
  run_.stop = [&]() -> std::optional<std::string_view> {
    evaluating = !job_->events.empty() && job_->events.back() == "read 1";
    return evaluating && ++polls == 3 ? std::optional<std::string_view>("SIGINT") : std::nullopt;
  };
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    job.assignment_after_step[2] = {.snapshot_id = 1, .evaluates = true};
  });
  EXPECT_EQ(job_->events,
            strings({"step 0:0", "step 0:16", "read 1", "stop 0", "done 1", "refresh"}));
  EXPECT_TRUE(run_.metrics.evaluations.empty());
  EXPECT_EQ(outcome.stopped_by, "SIGINT");
}

TEST_F(AsynchronousStop, DuringTheLastEvaluationHasACheckpoint) {
  const TemporaryFolder folder;
  run_.options.checkpoint_dir = folder.path();
  run_.stop = [&]() -> std::optional<std::string_view> {
    if (job_->events.back() != "read 7 with slots") return std::nullopt;
    return "SIGTERM";
  };
  const TrainOutcome outcome = train(
      [&](ScriptedJob& job) {
        job.events.push_back("nothing yet");
        job.assignments_at_end = {
            {.snapshot_id = 7, .evaluates = true, .writes_checkpoint = true, .is_final = true}};
      },
      {{0, 0, 16}});
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_EQ(outcome.checkpoint, checkpoint_path(folder.path(), 1));
  EXPECT_FALSE(outcome.test);
  EXPECT_EQ(job_->events.back(), "done 7");
}

}  // namespace
}  // namespace syncopate
