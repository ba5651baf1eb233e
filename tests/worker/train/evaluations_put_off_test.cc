// Tests the asynchronous loop with --eval-when end.
#include <gtest/gtest.h>

#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/train/asynchronous_case.h"
#include "worker/train/deferred_evaluations.h"

namespace syncopate {
namespace {

class DeferredEvaluationsOfALoop : public testing::Test, protected ScriptedRun {
 protected:
  void SetUp() override { run_.kept = &kept_; }
  static void evaluate_twice(ScriptedJob& job) {
    job.assignment_after_step[2] = {.snapshot_id = 3, .evaluates = true};
    job.assignment_after_step[4] = {.snapshot_id = 4, .evaluates = true};
    job.assignments_at_end = {kLast};
  }

  TemporaryFolder folder_;
  DeferredEvaluations kept_{{.folder = folder_.path(), .is_of_run = true}};
};

TEST_F(DeferredEvaluationsOfALoop, HaveTheResultsAndTimesOfEvaluationsThatWereNotDeferred) {
  run_.kept = nullptr;
  const TrainOutcome expected = train(evaluate_twice);
  const std::vector<EvalMetrics> lines = std::exchange(run_.metrics.evaluations, {});

  run_.kept = &kept_;
  const TrainOutcome found = train(evaluate_twice);
  ASSERT_EQ(run_.metrics.evaluations.size(), 3U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(run_.metrics.evaluations[i].step, lines[i].step);
    EXPECT_EQ(run_.metrics.evaluations[i].epoch, lines[i].epoch);
    EXPECT_EQ(run_.metrics.evaluations[i].result.loss, lines[i].result.loss);
    EXPECT_EQ(run_.metrics.evaluations[i].trained_samples, lines[i].trained_samples);
    EXPECT_EQ(run_.metrics.evaluations[i].began_at, run_.metrics.begins.back().began_at);
  }
  EXPECT_LT(run_.metrics.evaluations[0].trained_seconds,
            run_.metrics.evaluations[1].trained_seconds);
  EXPECT_EQ(found.test->loss, expected.test->loss);
  EXPECT_EQ(folder_.num_files(), 0U);
}

TEST_F(DeferredEvaluationsOfALoop, AreNotMadeBeforeTrainingHasEnded) {
  std::vector<std::size_t> made;  // evaluations before each lease
  train([&](ScriptedJob& job) {
    evaluate_twice(job);
    job.before_lease = [&] { made.push_back(run_.metrics.evaluations.size()); };
  });
  EXPECT_EQ(made, std::vector<std::size_t>(made.size(), 0U));
  EXPECT_EQ(run_.metrics.evaluations.size(), 3U);
}

TEST_F(DeferredEvaluationsOfALoop, AreMadeAtOnceWhenTheyCannotBeStored) {
  std::filesystem::remove_all(folder_.path());
  std::vector<std::size_t> made;  // evaluations before each lease
  const TrainOutcome outcome = train([&](ScriptedJob& job) {
    evaluate_twice(job);
    job.before_lease = [&] { made.push_back(run_.metrics.evaluations.size()); };
  });
  EXPECT_EQ(run_.metrics.evaluations.size(), 3U);
  EXPECT_GE(made.back(), 1U) << "while training went on";
  EXPECT_TRUE(outcome.test);
}

TEST_F(DeferredEvaluationsOfALoop, AreMadeByTheWorkerThatStoredThemWhenAnotherEndsTheJob) {
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    evaluate_twice(job);
    job.assignments_at_end.clear();
  });
  ASSERT_EQ(run_.metrics.evaluations.size(), 2U);
  EXPECT_EQ(run_.metrics.evaluations[0].step, 2);
  EXPECT_FALSE(outcome.test);
}

TEST_F(DeferredEvaluationsOfALoop, OfAKilledWorkerAreMadeByTheOneThatEndsTheJob) {
  {
    DeferredEvaluations killed({.folder = folder_.path(), .is_of_run = true});
    killed.add({.step = 1, .began_at = 5.0}, run_.make_one_device()->snapshot());
  }
  train(evaluate_twice);
  ASSERT_EQ(run_.metrics.evaluations.size(), 4U);
  EXPECT_EQ(run_.metrics.evaluations[0].step, 1);
  EXPECT_EQ(run_.metrics.evaluations[0].began_at, 5.0);
}

TEST_F(DeferredEvaluationsOfALoop, WaitForAResumeWhenTheJobIsStopped) {
  run_.options.checkpoint_dir = folder_.path();
  run_.stop = [&]() -> std::optional<std::string_view> {
    if (job_->trained.size() < 3) return std::nullopt;
    return "SIGTERM";
  };
  const TrainOutcome outcome = train([](ScriptedJob& job) {
    evaluate_twice(job);
    job.assignment_when_stopped = Assignment{.snapshot_id = 9,
                                             .writes_checkpoint = true,
                                             .is_final = true,
                                             .stopped_by = ps::StopKind::kSigterm};
  });
  EXPECT_EQ(outcome.stopped_by, "SIGTERM");
  EXPECT_TRUE(run_.metrics.evaluations.empty());
  ASSERT_FALSE(run_.display.notes.empty());
  EXPECT_TRUE(contains(run_.display.notes.back(), "--resume evaluates them at its end"));
  EXPECT_GE(kept_.size(), 1);
}

}  // namespace
}  // namespace syncopate
