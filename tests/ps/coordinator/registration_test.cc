#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

TEST(Registration, SendsAServerItsIncarnationAtOnceAndTheDeclarationLater) {
  JobCase job;
  job.coordinator->on_hello(job.server_hello(0));
  job.collect();
  EXPECT_EQ(job.take<wire::WelcomeT>(server(0))->incarnation, 1U);
  EXPECT_FALSE(job.take<wire::DeclaredT>(server(0)));
  job.coordinator->on_hello(job.worker_hello(1));
  job.collect();
  const auto declared = job.take<wire::DeclaredT>(server(0));
  ASSERT_TRUE(declared);
  EXPECT_EQ(declared->declaration->dataset_size, 12);
}

TEST(Registration, AdmitsWorkersOnceAllTasksAreRegistered) {
  JobCase job(make_declaration(), 2);
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  job.send_hello(job.worker_hello(1));
  EXPECT_FALSE(job.take<wire::WelcomeT>(worker(0)));
  EXPECT_EQ(job.coordinator->missing_tasks(), "server 1");
  job.send_hello(job.server_hello(1));
  const auto first = job.take<wire::WelcomeT>(worker(0));
  const auto second = job.take<wire::WelcomeT>(worker(1));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->initialises);
  EXPECT_FALSE(second->initialises);
  EXPECT_EQ(second->incarnation, 1U);
  ASSERT_EQ(second->servers.size(), 2U);
  EXPECT_EQ(second->servers[1]->endpoint, "h:4001");
  EXPECT_EQ(second->servers[1]->incarnation, 1U);
  EXPECT_EQ(second->servers[1]->fingerprint, 7U);
  EXPECT_EQ(job.coordinator->missing_tasks(), std::nullopt);
}

TEST(Registration, StartsAllWorkersTogetherWhenAllAreReady) {
  JobCase job;
  job.register_all();
  job.send(worker(1), wire::ReadyT{});
  EXPECT_FALSE(job.take<wire::StartT>(worker(1)));
  wire::InitialisedT initialised;
  initialised.step = 5;
  initialised.samples = 10;
  initialised.epoch = 0;
  initialised.offset = 10;
  job.send(worker(0), initialised);
  for (int w = 0; w < 2; ++w) {
    const auto start = job.take<wire::StartT>(worker(w));
    ASSERT_TRUE(start) << w;
    EXPECT_EQ(start->step, 5);
    EXPECT_EQ(start->samples, 10);
    EXPECT_EQ(start->offset, 10);
  }
  EXPECT_TRUE(job.coordinator->has_started());
}

TEST(Registration, IgnoresReadyOfTheWorkerThatWritesTheInitialValues) {
  JobCase job;
  job.register_all();
  job.send(worker(0), wire::ReadyT{});
  job.send(worker(1), wire::ReadyT{});
  EXPECT_FALSE(job.coordinator->has_started());
}

TEST(Registration, FailsForAPositionOutsideTheData) {
  JobCase job;
  job.register_all();
  wire::InitialisedT initialised;
  initialised.offset = 13;
  job.send(worker(0), initialised);
  EXPECT_TRUE(contains(*job.coordinator->failure(), "sample 13"));
  EXPECT_TRUE(job.take<wire::FailingT>(worker(1)));
}

TEST(Registration, NamesTheTasksThatDidNotRegisterInTime) {
  JobCase job(make_declaration(), 2);
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  job.coordinator->on_rendezvous_timeout("within 120 s at h:4000");
  job.collect();
  const auto refused = job.take<wire::RefusedT>(worker(0));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(
      contains(refused->line, "worker 1, server 1 did not register within 120 s at h:4000; see"));
  EXPECT_FALSE(refused->is_usage_error);
  EXPECT_TRUE(job.take<wire::RefusedT>(server(0)));
  EXPECT_TRUE(job.coordinator->is_over());
  EXPECT_EQ(job.send_hello(job.worker_hello(1)), *job.coordinator->failure());
}

TEST(Registration, EndsTheJobIfAWorkerDoesNotFit) {
  JobCase job;
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  wire::HelloT hello = job.worker_hello(1);
  hello.declaration->batch_size = 3;
  const std::string line = job.send_hello(hello);
  EXPECT_TRUE(contains(line, "worker 1"));
  EXPECT_EQ(job.coordinator->failure(), line);
  EXPECT_EQ(job.take<wire::RefusedT>(worker(0))->line, line);
  EXPECT_EQ(job.take<wire::RefusedT>(server(0))->line, line);
}

TEST(Registration, RefusesAWorkerThatDoesNotFitAfterTheStart) {
  JobCase job;
  job.register_all();
  wire::HelloT hello = job.worker_hello(1);
  hello.declaration->batch_size = 3;
  EXPECT_NE(job.send_hello(hello), "");
  EXPECT_FALSE(job.coordinator->is_over());
}

TEST(Registration, AdmitsARestartedWorkerAsANewIncarnation) {
  StartedJob job;
  job.lose(worker(1));
  EXPECT_EQ(job.take<wire::WorkerLeftT>(server(0))->incarnation, 1U);
  EXPECT_EQ(job.send_hello(job.worker_hello(1)), "");
  const auto welcome = job.take<wire::WelcomeT>(worker(1));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->incarnation, 2U);
  EXPECT_FALSE(welcome->initialises);
  job.send(worker(1), wire::ReadyT{});
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

TEST(Registration, TreatsASecondHelloAsTheLossOfTheFirstIncarnation) {
  StartedJob job;
  const SampleRange batch = job.lease(1);
  EXPECT_EQ(job.send_hello(job.worker_hello(1)), "");
  EXPECT_EQ(job.take<wire::WorkerLeftT>(server(0))->worker, 1);
  EXPECT_EQ(job.lease(0), batch);
}

TEST(Registration, AdmitsAReconnectingWorkerWithoutWaitingForReady) {
  StartedJob job;
  wire::HelloT hello = job.worker_hello(1, 1);
  hello.sequence = 3;
  hello.call = 2;
  EXPECT_EQ(job.send_hello(hello), "");
  const auto welcome = job.take<wire::WelcomeT>(worker(1));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->incarnation, 1U);
  EXPECT_EQ(welcome->call, 2U);
  EXPECT_FALSE(job.take<wire::WorkerLeftT>(server(0)));
  job.lease(1);
  job.send(worker(1), wire::ReadyT{});
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

TEST(Registration, RefusesALostIncarnation) {
  StartedJob job;
  job.lose(worker(1));
  wire::HelloT hello = job.worker_hello(1, 1);
  EXPECT_TRUE(
      contains(job.send_hello(hello), "worker 1 was lost (worker 1 (host h, pid 7) is silent"));
  job.send_hello(job.worker_hello(1));
  EXPECT_TRUE(contains(job.send_hello(hello), "incarnation 2 has replaced it"));
}

TEST(Registration, FailsIfFingerprintsOfTheDeclarationDiffer) {
  JobCase job(make_declaration(), 2);
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  job.coordinator->on_hello(job.server_hello(1));
  wire::DeclaredT answer;
  answer.fingerprint = 8;
  job.send(server(1), std::move(answer));
  EXPECT_TRUE(contains(*job.coordinator->failure(), "same version"));
}

TEST(Registration, StartsANewWorkerAfterTheSnapshotIsCopied) {
  StartedJob job(make_declaration(), 1, true);
  job.lose(worker(1));
  job.request_snapshot();
  job.send_hello(job.worker_hello(1));
  EXPECT_TRUE(job.take<wire::WelcomeT>(worker(1)));
  job.send(worker(1), wire::ReadyT{});
  EXPECT_FALSE(job.take<wire::StartT>(worker(1)));
  job.freeze_and_copy({});
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

TEST(Registration, IsRefusedForATaskThatIsRestartedWithoutEnd) {
  StartedJob job;
  for (int i = 2; i < 65536; ++i) {
    ASSERT_TRUE(job.coordinator->on_hello(job.worker_hello(1)).task);
    job.coordinator->take_outgoing();
  }
  EXPECT_TRUE(contains(job.send_hello(job.worker_hello(1)), "worker 1 was restarted too often"));
}

TEST(TextExchange, SendsAllTextsToAllWorkersWhenTheLastHasArrived) {
  JobCase job;
  job.register_all();
  const auto send = [&](int w, std::uint64_t round, std::uint8_t text) {
    wire::ExchangeT exchange;
    exchange.round = round;
    exchange.text = {text};
    job.send(worker(w), std::move(exchange));
  };
  send(1, 1, 'b');
  EXPECT_FALSE(job.take<wire::ExchangedT>(worker(1)));
  send(0, 1, 'a');
  for (int w = 0; w < 2; ++w) {
    const auto exchanged = job.take<wire::ExchangedT>(worker(w));
    ASSERT_TRUE(exchanged);
    EXPECT_EQ(exchanged->texts[0]->text, std::vector<std::uint8_t>{'a'});
    EXPECT_EQ(exchanged->texts[1]->text, std::vector<std::uint8_t>{'b'});
  }
}

TEST(Registration, NamesAdmittedWorkersThatAreNotReady) {
  JobCase job(make_declaration(), 2);
  EXPECT_EQ(job.coordinator->joining_workers(), std::vector<int>{});
  job.register_all();
  EXPECT_EQ(job.coordinator->joining_workers(), (std::vector<int>{0, 1}));
  job.send(worker(1), wire::ReadyT{});
  EXPECT_EQ(job.coordinator->joining_workers(), std::vector<int>{0});
  job.lose(server(1));  // without server 1 no worker can become ready
  EXPECT_EQ(job.coordinator->joining_workers(), std::vector<int>{});
}

TEST(TextExchange, KeepsOneRoundOfEachWorker) {
  StartedJob job;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    wire::ExchangeT exchange;
    exchange.round = round;
    job.send(worker(0), std::move(exchange));
  }
  wire::ExchangeT first;
  first.round = 1;
  job.send(worker(1), std::move(first));
  EXPECT_FALSE(job.take<wire::ExchangedT>(worker(1)));
}

TEST(TextExchange, DoNotWaitForALostWorker) {
  StartedJob job;
  wire::ExchangeT exchange;
  exchange.round = 1;
  job.send(worker(0), std::move(exchange));
  job.lose(worker(1));
  EXPECT_TRUE(job.take<wire::ExchangedT>(worker(0)));
}

JobCase job_with_late(std::vector<int> late) {
  JobCase job;
  job.coordinator = std::make_unique<Coordinator>(
      CoordinatorOptions{.nonce = "n", .servers = 1, .late_workers = std::move(late)});
  return job;
}

TEST(Registration, DoesNotWaitForALateWorkerAndAdmitsItLater) {
  JobCase job = job_with_late({0});
  job.send_hello(job.server_hello(0));
  EXPECT_EQ(job.coordinator->missing_tasks(), "worker 1");
  job.send_hello(job.worker_hello(1));
  const auto welcome = job.take<wire::WelcomeT>(worker(1));
  ASSERT_TRUE(welcome);
  EXPECT_TRUE(welcome->initialises) << "the lowest that is there";
  job.send(worker(1), wire::InitialisedT{});
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
  EXPECT_EQ(job.coordinator->missing_tasks(), std::nullopt);
  job.train(1, 1);

  job.send_hello(job.worker_hello(0));
  const auto late = job.take<wire::WelcomeT>(worker(0));
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->initialises);
  job.send(worker(0), wire::ReadyT{});
  const auto start = job.take<wire::StartT>(worker(0));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->step, 1);
  EXPECT_EQ(job.lease(0), (SampleRange{0, 2, 4}));
}

TEST(Registration, RefusesALateWorkerWhenTheJobIsOver) {
  JobCase job = job_with_late({1});
  job.send_hello(job.server_hello(0));
  job.send_hello(job.worker_hello(0));
  job.send(worker(0), wire::InitialisedT{});
  for (std::uint64_t step = 1; step <= 12; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 12}});
  wire::AssignmentDoneT done;
  done.snapshot = job.take<wire::AssignmentT>(worker(0))->snapshot;
  job.send(worker(0), done);
  job.send(worker(0), wire::LeavingT{});
  ASSERT_TRUE(job.coordinator->is_over());
  EXPECT_FALSE(job.coordinator->failure());
  const Coordinator::HelloAnswer late = job.coordinator->on_hello(job.worker_hello(1));
  EXPECT_FALSE(late.task);
  EXPECT_TRUE(late.answer.body.AsRefused()->is_over);
}

}  // namespace
}  // namespace syncopate::ps
