#include <gtest/gtest.h>

#include "tests/ps/coordinator/coordinator_case.h"

namespace syncopate::ps {
namespace {

wire::DeclarationT with_checkpoints() {
  wire::DeclarationT declaration = make_declaration();
  declaration.writes_checkpoints = true;
  return declaration;
}

TEST(FinalCut, EvaluatesWritesAndEndsTheJob) {
  wire::DeclarationT declaration = with_checkpoints();
  declaration.total_epochs = 1;
  JobCase job(declaration);
  job.start();
  for (std::uint64_t step = 1; step <= 6; ++step) job.train(0, step);
  job.freeze_all({{0, 1, 6}});
  job.copy_all();
  const auto appointment = job.take<wire::AppointmentT>(worker(0));
  ASSERT_TRUE(appointment);
  EXPECT_TRUE(appointment->is_final);
  EXPECT_TRUE(appointment->evaluates);
  EXPECT_TRUE(appointment->writes_checkpoint);
  wire::AppointmentDoneT done;
  done.cut = appointment->cut;
  job.say(worker(0), done);
  for (int w = 0; w < 2; ++w) {
    EXPECT_TRUE(job.take<wire::FinishedT>(worker(w)));
    EXPECT_FALSE(job.take<wire::FinishedT>(server(0)));
    job.say(worker(w), wire::LeavingT{});
  }
  EXPECT_TRUE(job.take<wire::FinishedT>(server(0)));
  EXPECT_TRUE(job.coordinator->is_over());
  EXPECT_FALSE(job.coordinator->failure());
}

TEST(FinalCut, OfAStoppedJobWaitsForBatchesUnderWayAndDoesNotEvaluate) {
  JobCase job(with_checkpoints());
  job.start();
  const SampleRange batch = job.lease(0);
  wire::StopRequestT stop;
  stop.kind = 1;
  job.say(worker(1), stop);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.trained(0, 1, batch);
  job.freeze_all({{0, 1, 1}});
  job.copy_all();
  const auto appointment = job.take<wire::AppointmentT>(worker(0));
  ASSERT_TRUE(appointment);
  EXPECT_TRUE(appointment->is_final);
  EXPECT_FALSE(appointment->evaluates);
  EXPECT_TRUE(appointment->writes_checkpoint);
  EXPECT_EQ(appointment->stopped_by, 1);
  EXPECT_EQ(appointment->step, 1);
}

}  // namespace
}  // namespace syncopate::ps
