#include <gtest/gtest.h>

#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

void fail(JobCase& job, int index, const std::string& reason, bool ends_job = false) {
  wire::FailingT failing;
  failing.ends_job = ends_job;
  failing.reason = reason;
  job.send(worker(index), std::move(failing));
}

TEST(AWorkerLostBeforeAllHaveRegistered, EndsTheJobIfItWillNotReturn) {
  for (const bool returns : {false, true}) {
    const JobCase job;
    Coordinator coordinator({.nonce = "n", .servers = 1, .workers_return = returns});
    coordinator.on_hello(job.server_hello(0));
    wire::HelloT hello = job.worker_hello(0);
    hello.declaration = std::make_unique<wire::DeclarationT>(job.declaration);
    ASSERT_TRUE(coordinator.on_hello(hello).task);
    coordinator.on_task_lost(worker(0), "worker 0 is silent");
    EXPECT_EQ(coordinator.is_over(), !returns);
    EXPECT_EQ(coordinator.failure().value_or(""),
              returns ? "" : "worker 0 is silent, before all tasks had registered");
  }
}

TEST(ALostWorker, IsReportedToTheServersAndTheJobContinues) {
  StartedJob job(make_declaration(), 2);
  job.lose(worker(0));
  for (int s = 0; s < 2; ++s) {
    const auto left = job.take<wire::WorkerLeftT>(server(s));
    ASSERT_TRUE(left);
    EXPECT_EQ(left->worker, 0);
    EXPECT_EQ(left->incarnation, 1U);
  }
  EXPECT_EQ(job.coordinator->live_workers(), 1);
  EXPECT_FALSE(job.coordinator->is_over());
  EXPECT_EQ(job.coordinator->missing_tasks(), std::nullopt);
}

TEST(ALostWorker, IsMissingIfItWasTheLastOne) {
  StartedJob job;
  job.lose(worker(0));
  job.lose(worker(1), "ended by signal 9");
  EXPECT_EQ(job.coordinator->live_workers(), 0);
  EXPECT_EQ(job.coordinator->missing_tasks(), "worker 0, worker 1");
  job.coordinator->on_rendezvous_timeout("within 120 s at h:4000");
  EXPECT_TRUE(contains(*job.coordinator->failure(), "ended by signal 9"));
}

TEST(ALostWorker, IsMissingIfItHadToWriteTheInitialValues) {
  JobCase job;
  job.register_all();
  job.lose(worker(0));
  job.send(worker(1), wire::ReadyT{});
  EXPECT_EQ(job.coordinator->missing_tasks(), "worker 0");
  job.send_hello(job.worker_hello(0));
  EXPECT_EQ(job.take<wire::WelcomeT>(worker(0))->incarnation, 1U);
  const auto welcome = job.take<wire::WelcomeT>(worker(0));
  ASSERT_TRUE(welcome);
  EXPECT_TRUE(welcome->initialises);
  job.send(worker(0), wire::InitialisedT{});
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

TEST(ALostWorker, DoesNotDelayTheStartOnceItWasAdmitted) {
  JobCase job;
  job.register_all();
  job.send(worker(0), wire::InitialisedT{});
  EXPECT_FALSE(job.coordinator->has_started());
  job.lose(worker(1));
  EXPECT_TRUE(job.take<wire::StartT>(worker(0)));
}

TEST(AFailingWorker, IsRemovedLikeALostOne) {
  StartedJob job;
  const SampleRange batch = job.lease(0);
  fail(job, 0, "the disk is full");
  EXPECT_FALSE(job.coordinator->is_over());
  EXPECT_EQ(job.lease(1), batch);
}

TEST(AFailingWorker, EndsTheJobWithItsReasonIfAllHaveFailed) {
  StartedJob job;
  fail(job, 0, "the disk is full");
  fail(job, 1, "the loss is nan");
  EXPECT_EQ(job.coordinator->failure(), "worker 1 (host h, pid 7) failed: the loss is nan");
  EXPECT_TRUE(job.take<wire::FailingT>(server(0)));
}

TEST(AFailingWorker, EndsTheJobIfTheOthersWouldFailAlike) {
  StartedJob job;
  fail(job, 1, "a.png: no picture", true);
  EXPECT_EQ(job.coordinator->failure(), "worker 1 (host h, pid 7) failed: a.png: no picture");
}

TEST(AFailingWorker, EndsTheJobBeforeItHasStarted) {
  JobCase job;
  job.register_all();
  fail(job, 1, "no such folder");
  EXPECT_EQ(job.take<wire::FailingT>(worker(0))->reason,
            "worker 1 (host h, pid 7) failed: no such folder");
}

TEST(ALostServer, IsMarkedInTheRosterAndMissing) {
  StartedJob job(make_declaration(), 2);
  job.lose(server(1));
  const auto roster = job.take<wire::RosterT>(worker(1));
  ASSERT_TRUE(roster);
  EXPECT_EQ(roster->servers[0]->incarnation, 1U);
  EXPECT_EQ(roster->servers[1]->incarnation, 0U);
  EXPECT_EQ(job.coordinator->missing_tasks(), "server 1");
  job.lose(server(1), "server 1 has been away for 5 s");
  EXPECT_EQ(job.coordinator->failure(), "server 1 has been away for 5 s");
}

TEST(AServerThatReconnects, KeepsItsValues) {
  StartedJob job(make_declaration(), 2);
  job.lose(worker(0));
  job.lose(server(1));
  job.clear_messages();
  EXPECT_EQ(job.send_hello(job.server_hello(1, 1)), "");
  EXPECT_EQ(job.take<wire::WelcomeT>(server(1))->incarnation, 1U);
  EXPECT_EQ(job.take<wire::WorkerLeftT>(server(1))->worker, 0);
  EXPECT_EQ(job.take<wire::RosterT>(worker(1))->servers[1]->incarnation, 1U);
  EXPECT_FALSE(job.take<wire::RollBackT>(server(1)));
}

TEST(AWorkerLostAfterTheFinalSnapshot, DoesNotKeepOthersFromLeaving) {
  wire::DeclarationT declaration = make_declaration();
  declaration.total_epochs = 1;
  StartedJob job(declaration);
  for (std::uint64_t step = 1; step <= 6; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 6}});
  wire::AssignmentDoneT done;
  done.snapshot = job.take<wire::AssignmentT>(worker(0))->snapshot;
  job.send(worker(0), done);
  job.send(worker(0), wire::LeavingT{});
  EXPECT_FALSE(job.coordinator->is_over());
  job.lose(worker(1));
  EXPECT_TRUE(job.coordinator->is_over());
  EXPECT_FALSE(job.coordinator->failure());
}

TEST(AWorkerThatRegistersAfterTheFinalSnapshot, IsRefused) {
  wire::DeclarationT declaration = make_declaration();
  declaration.total_epochs = 1;
  StartedJob job(declaration);
  job.lose(worker(1));
  for (std::uint64_t step = 1; step <= 6; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 6}});
  wire::AssignmentDoneT done;
  done.snapshot = job.take<wire::AssignmentT>(worker(0))->snapshot;
  job.send_hello(job.worker_hello(1));  // worker 1 is admitted and connects to the shards
  ASSERT_TRUE(job.take<wire::WelcomeT>(worker(1)));
  job.send(worker(0), done);
  EXPECT_TRUE(job.take<wire::RefusedT>(worker(1))->is_over);
  EXPECT_TRUE(contains(job.send_hello(job.worker_hello(1)), "after the job was over"));
}

}  // namespace
}  // namespace syncopate::ps
