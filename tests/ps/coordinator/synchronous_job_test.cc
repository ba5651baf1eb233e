// Tests jobs with --consistency sync and no backup workers: every worker is needed, and no worker
// leases batches.
#include <gtest/gtest.h>

#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

wire::DeclarationT synchronous_declaration() {
  wire::DeclarationT declaration = make_declaration();
  declaration.consistency = static_cast<std::uint8_t>(Consistency::kSync);
  declaration.writes_checkpoints = true;
  declaration.checkpoint_every_steps = 1;
  declaration.eval_every_epochs = 1;
  return declaration;
}

void push(JobCase& job, int index, std::uint64_t sequence) {
  wire::PushT pushed;
  pushed.sequence = sequence;
  pushed.loss = 0.25;
  job.trained(index, 1, pushed);
}

TEST(SynchronousJob, FailsIfAWorkerIsLost) {
  StartedJob job(synchronous_declaration(), 2);
  job.lose(worker(0), "worker 0 was not heard of for 3.5 s");
  EXPECT_EQ(job.take<wire::FailingT>(worker(1))->reason, "worker 0 was not heard of for 3.5 s");
  EXPECT_TRUE(job.take<wire::FailingT>(server(1)));
  EXPECT_FALSE(job.take<wire::FailingT>(worker(0)));
  EXPECT_EQ(job.coordinator->failure(), "worker 0 was not heard of for 3.5 s");
  EXPECT_TRUE(job.coordinator->is_over());
}

// A server that knew of the loss would apply the step under way with the pushes of the others.
TEST(SynchronousJob, DoesNotTellTheServersToGoOnWithoutALostWorker) {
  StartedJob job(synchronous_declaration(), 2);
  job.lose(worker(1));
  for (int s = 0; s < 2; ++s) {
    EXPECT_FALSE(job.take<wire::WorkerLeftT>(server(s)));
    EXPECT_TRUE(job.take<wire::FailingT>(server(s)));
  }
}

TEST(SynchronousJob, DoesNotAdmitARestartedWorker) {
  StartedJob job(synchronous_declaration());
  EXPECT_TRUE(contains(job.send_hello(job.worker_hello(1)), "--consistency sync"));
  EXPECT_FALSE(job.coordinator->is_over());
}

TEST(SynchronousJob, IsOverWhenAllWorkersHaveLeft) {
  StartedJob job(synchronous_declaration());
  job.send(worker(1), wire::LeavingT{});
  EXPECT_FALSE(job.coordinator->is_over());
  job.send(worker(0), wire::LeavingT{});
  EXPECT_TRUE(job.take<wire::FinishedT>(server(0)));
  EXPECT_TRUE(job.coordinator->is_over());
  EXPECT_FALSE(job.coordinator->failure());
}

TEST(SynchronousJob, MakesSnapshotsForFilesOnly) {
  StartedJob job(synchronous_declaration(), 1, true);
  for (std::uint64_t step = 1; step <= 12; ++step) {
    push(job, 0, step);
    push(job, 1, step);
  }
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.request_snapshot();
  job.freeze_and_copy({{0, 1, 12}, {1, 1, 12}});
  EXPECT_FALSE(job.take<wire::AssignmentT>(worker(0)));
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
}

TEST(SynchronousJob, CountsAStepOnce) {
  StartedJob job(synchronous_declaration());
  push(job, 0, 1);
  push(job, 1, 1);
  push(job, 1, 2);
  EXPECT_EQ(job.coordinator->status().step, 1);
  EXPECT_EQ(job.coordinator->status().samples, 2);
  EXPECT_EQ(job.coordinator->status().loss, 0.75);
}

TEST(SynchronousJob, IsSavedAsOfTheSnapshot) {
  StartedJob job(synchronous_declaration(), 1, true);
  push(job, 0, 1);
  push(job, 1, 1);
  job.request_snapshot();
  job.freeze_all({{0, 1, 2}, {1, 1, 2}});
  for (int w = 0; w < 2; ++w) {
    for (const std::uint64_t step : {2U, 3U}) push(job, w, step);
  }
  Coordinator again({.nonce = "n", .servers = 1});
  again.restore(job.coordinator->save(1).value());
  EXPECT_EQ(again.status().step, 2);
}

TEST(SynchronousJob, FailsIfAServerIsLostAfterSomeWorkersHaveLeft) {
  StartedJob job(synchronous_declaration(), 2, true);
  job.request_snapshot();
  job.freeze_and_copy({});
  job.send(worker(1), wire::LeavingT{});
  wire::HelloT hello = job.server_hello(1);
  hello.snapshots = {1};
  job.send_hello(hello);
  EXPECT_TRUE(contains(*job.coordinator->failure(), "--resume"));
}

TEST(SynchronousJob, RollsBackAWorkerThatIsAboutToLeave) {
  StartedJob job(synchronous_declaration(), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.send(worker(1), wire::LeavingT{});
  job.roll_back(0);
  job.roll_back(1);
  job.send(worker(0), wire::LeavingT{});
  EXPECT_FALSE(job.coordinator->failure());
  for (int w = 0; w < 2; ++w) {
    EXPECT_TRUE(job.take<wire::RollBackT>(worker(w)));
    EXPECT_FALSE(job.take<wire::FinishedT>(worker(w)));
    job.send_ready(w);
  }
  for (int w = 0; w < 2; ++w) EXPECT_TRUE(job.take<wire::StartT>(worker(w)));
}

TEST(SynchronousJob, RollsBackWithARestartedServer) {
  StartedJob job(synchronous_declaration(), 2, true);
  push(job, 0, 1);
  push(job, 1, 1);
  job.request_snapshot();
  job.freeze_all({{0, 1, 1}, {1, 1, 1}});
  push(job, 0, 2);
  push(job, 1, 2);
  job.copy_all();
  job.lose(server(1));
  wire::HelloT hello = job.server_hello(1);
  hello.snapshots = {1};
  job.send_hello(hello);
  EXPECT_EQ(job.roll_back(0), 1U);
  EXPECT_FALSE(job.take<wire::RollBackT>(worker(0)));
  EXPECT_EQ(job.roll_back(1), 1U);
  EXPECT_EQ(job.take<wire::RollBackT>(worker(0))->snapshot, 1U);
  EXPECT_EQ(job.take<wire::RollBackT>(worker(1))->snapshot, 1U);
  job.send_ready(0);
  EXPECT_FALSE(job.take<wire::StartT>(worker(0)));
  job.send_ready(1);
  for (int w = 0; w < 2; ++w) {
    const auto start = job.take<wire::StartT>(worker(w));
    ASSERT_TRUE(start);
    EXPECT_EQ(start->step, 1);
    EXPECT_EQ(start->samples, 2);
    EXPECT_EQ(start->offset, 2);
  }
}

}  // namespace
}  // namespace syncopate::ps
