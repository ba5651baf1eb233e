// The snapshot with which a job ends.
#include <gtest/gtest.h>

#include "tests/ps/coordinator/coordinator_case.h"

namespace syncopate::ps {
namespace {

TEST(FinalSnapshot, IsEvaluatedAndWrittenAndEndsTheJob) {
  wire::DeclarationT declaration = with_checkpoints(0);
  declaration.total_epochs = 1;
  StartedJob job(declaration);
  for (std::uint64_t step = 1; step <= 6; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 6}});
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_TRUE(assignment->is_final);
  EXPECT_TRUE(assignment->evaluates);
  EXPECT_TRUE(assignment->writes_checkpoint);
  wire::AssignmentDoneT done;
  done.snapshot = assignment->snapshot;
  job.send(worker(0), done);
  for (int w = 0; w < 2; ++w) {
    EXPECT_TRUE(job.take<wire::FinishedT>(worker(w)));
    EXPECT_FALSE(job.take<wire::FinishedT>(server(0)));
    job.send(worker(w), wire::LeavingT{});
  }
  EXPECT_TRUE(job.take<wire::FinishedT>(server(0)));
  EXPECT_TRUE(job.coordinator->is_over());
  EXPECT_FALSE(job.coordinator->failure());
}

TEST(FinalSnapshot, EndsTheJobAlthoughAWorkerIsJoining) {
  wire::DeclarationT declaration = make_declaration();
  declaration.total_epochs = 1;
  StartedJob job(declaration);
  job.lose(worker(1));
  job.send_hello(job.worker_hello(1));
  for (std::uint64_t step = 1; step <= 6; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 6}});
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  finish_assignment(job, 0, assignment->snapshot);
  const auto refused = job.take<wire::RefusedT>(worker(1));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_over);
  job.send(worker(0), wire::LeavingT{});
  EXPECT_TRUE(job.coordinator->is_over());
}

TEST(FinalSnapshot, OfAStoppedJobWaitsForHeldBatchesAndIsNotEvaluated) {
  StartedJob job(with_checkpoints(0));
  const SampleRange batch = job.lease(0);
  wire::StopRequestT stop;
  stop.kind = 1;
  job.send(worker(1), stop);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.trained(0, 1, batch);
  job.freeze_and_copy({{0, 1, 1}});
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_TRUE(assignment->is_final);
  EXPECT_FALSE(assignment->evaluates);
  EXPECT_TRUE(assignment->writes_checkpoint);
  EXPECT_EQ(assignment->stopped_by, 1);
  EXPECT_EQ(assignment->step, 1);
}

}  // namespace
}  // namespace syncopate::ps
