#include <gtest/gtest.h>

#include "ps/coordinator/wire_conversion.h"
#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

wire::StalenessT staleness(int index, std::vector<std::int64_t> counts, double sum,
                           std::uint64_t max) {
  wire::StalenessT entry;
  entry.worker = index;
  entry.counts = std::move(counts);
  entry.sum = sum;
  entry.max = max;
  return entry;
}

TEST(Snapshots, SendsTheLargestSequenceThatAnyServerReports) {
  StartedJob job(make_declaration(), 2, true);
  job.train(0, 1);
  job.request_snapshot();
  wire::FrozenT frozen;
  frozen.snapshot = job.take<wire::FreezeT>(server(0))->snapshot;
  frozen.entries = {{0, 1, 1}, {1, 1, 4}};
  job.send(server(0), frozen);
  EXPECT_FALSE(job.take<wire::SnapshotT>(server(0)));
  frozen.entries = {
      {0, 1, 2}, {1, 1, 3}, {1, 9, 99}};  // worker 1's entry 9 is an unknown incarnation
  job.send(server(1), frozen);
  for (int s = 0; s < 2; ++s) {
    const auto snapshot = job.take<wire::SnapshotT>(server(s));
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(entries_of(*snapshot), (std::vector<WorkerClock>{{0, 1, 2}, {1, 1, 4}}));
    EXPECT_TRUE(snapshot->to_file);
    EXPECT_TRUE(snapshot->with_slots);
  }
}

TEST(Snapshots, AreReleasedWhenCopiedAndAllPushesAreReported) {
  StartedJob job(make_declaration(), 2, true);
  const SampleRange batch = job.lease(0);
  job.request_snapshot();
  job.freeze_and_copy({{0, 1, 1}});
  EXPECT_FALSE(job.take<wire::ReleaseT>(server(0)));
  job.trained(0, 1, batch);
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(1)));
  EXPECT_FALSE(job.take<wire::AssignmentT>(worker(0)));
}

TEST(Snapshots, AreVoidIfAServerCannotWriteItsFileAndMadeAgainAtTheNextInterval) {
  StartedJob job(make_declaration(), 2, true);
  job.train(0, 1);
  for (const bool is_disk_full : {true, false}) {
    job.request_snapshot();
    job.freeze_all({{0, 1, 1}});
    for (int s = 0; s < 2; ++s) {
      wire::SnapshotDoneT done;
      done.snapshot = job.take<wire::SnapshotT>(server(s))->snapshot;
      done.not_written = is_disk_full && s == 1;
      job.send(server(s), std::move(done));
    }
    for (int s = 0; s < 2; ++s) {
      const auto release = job.take<wire::ReleaseT>(server(s));
      ASSERT_TRUE(release);
      EXPECT_EQ(release->is_void, is_disk_full) << s;
    }
  }
  EXPECT_FALSE(job.coordinator->failure());
}

TEST(Snapshots, DoNotWaitForALostWorker) {
  StartedJob job(make_declaration(), 1, true);
  job.lease(1);
  job.request_snapshot();
  job.freeze_all({{0, 1, 0}, {1, 1, 1}});
  job.lose(worker(1));
  job.copy_all();
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
}

TEST(Snapshots, LeaveOutAWorkerThatIsLostDuringFreeze) {
  StartedJob job(make_declaration(), 1, true);
  job.request_snapshot();
  job.lose(worker(1));
  job.freeze_all({{0, 1, 0}, {1, 1, 1}});
  EXPECT_EQ(job.take<wire::SnapshotT>(server(0))->entries.size(), 1U);
}

// Server 0 may receive the replacement's Hello after it has frozen.
TEST(Snapshots, CountThePushesOfAWorkerThatIsReplacedDuringFreeze) {
  StartedJob job(make_declaration(), 1, true);
  const SampleRange batch = job.lease(1);
  job.request_snapshot();
  const std::uint64_t snapshot = job.received[server(0)].back().body.AsFreeze()->snapshot;
  job.trained(1, 1, batch);
  job.lose(worker(1));
  job.send_hello(job.worker_hello(1));
  job.freeze_all({{1, 1, 1}});
  Coordinator again({.nonce = "n", .servers = 1});
  again.restore(job.coordinator->save(snapshot).value());
  EXPECT_EQ(again.status().samples, 2);
}

// Workers 1 and 2 are replaced in turn, so that one of them is joining at any time.
TEST(Snapshots, AreMadeAlthoughWorkersJoinAllTheTime) {
  wire::DeclarationT declaration = make_declaration();
  declaration.workers = 3;
  declaration.dataset_size = 1000;
  StartedJob job(declaration, 1, true);
  job.lose(worker(2));
  job.send_hello(job.worker_hello(2));
  for (int round = 0; round < 50; ++round) {
    const int joins = 1 + round % 2;
    job.lose(worker(joins));
    job.send_hello(job.worker_hello(joins));
    job.clear_messages();
    job.request_snapshot();
    job.send(worker(3 - joins), wire::ReadyT{});
    EXPECT_FALSE(job.take<wire::StartT>(worker(3 - joins)));
    job.freeze_and_copy({{0, 1, 0}});
    EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
    EXPECT_TRUE(job.take<wire::StartT>(worker(3 - joins)));
  }
}

TEST(Snapshots, AreDueAtTheEndOfAnEpochForEvaluationAndCheckpoint) {
  wire::DeclarationT declaration = with_checkpoints(0);
  declaration.eval_every_epochs = 1;
  StartedJob job(declaration);
  for (int step = 1; step <= 5; ++step) job.train(0, static_cast<std::uint64_t>(step));
  const SampleRange later = job.lease(1);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.trained(1, 1, later);
  const SampleRange next = job.lease(1);
  job.freeze_all({{0, 1, 5}, {1, 1, 1}});
  job.trained(1, 2, next);  // worker 1's push 2 comes after the snapshot
  wire::SnapshotDoneT done;
  done.snapshot = job.take<wire::SnapshotT>(server(0))->snapshot;
  done.staleness.push_back(std::make_unique<wire::StalenessT>(staleness(1, {1, 0, 1}, 2.0, 2)));
  job.send(server(0), std::move(done));
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_TRUE(assignment->evaluates);
  EXPECT_TRUE(assignment->writes_checkpoint);
  EXPECT_FALSE(assignment->is_final);
  EXPECT_EQ(assignment->stopped_by, -1);
  EXPECT_EQ(assignment->step, 6);
  EXPECT_EQ(assignment->samples, 12);
  EXPECT_EQ(assignment->epoch, 1);
  EXPECT_EQ(assignment->offset, 0);
  EXPECT_TRUE(assignment->untrained.empty());
  EXPECT_EQ(assignment->loss, 3.0);
  EXPECT_EQ(assignment->metric, 6);
  ASSERT_EQ(assignment->staleness.size(), 1U);
  EXPECT_EQ(assignment->staleness[0]->max, 2U);
  EXPECT_EQ(job.coordinator->status().staleness_mean, 1.0);
  EXPECT_EQ(job.coordinator->status().step, 7);
  EXPECT_FALSE(job.take<wire::ReleaseT>(server(0)));
  finish_assignment(job, 0, assignment->snapshot);
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
}

// What the rules made of one evaluation reaches the worker of the next one, and all workers follow
// the learning rate.
TEST(Snapshots, PassTheRulesOnToTheNextAssignment) {
  wire::DeclarationT declaration = with_checkpoints(0);
  declaration.eval_every_steps = 2;
  declaration.saves_evaluated = true;
  JobCase job(declaration);
  wire::InitialisedT initialised;
  initialised.rules = {1.0, 7.0};
  job.start(initialised);
  EXPECT_EQ(job.coordinator->status().learning_rate_factor, 1.0);
  job.train(0, 1);
  job.train(0, 2);
  job.freeze_and_copy({{0, 1, 2}});
  const auto first = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->rules, (std::vector<double>{1.0, 7.0}));
  EXPECT_TRUE(first->writes_checkpoint);
  wire::AssignmentDoneT done;
  done.snapshot = first->snapshot;
  done.rules = {0.5, 9.0};
  job.send(worker(0), done);
  EXPECT_EQ(job.coordinator->status().learning_rate_factor, 0.5);
  job.train(0, 3);
  job.train(0, 4);
  job.freeze_and_copy({{0, 1, 4}});
  const auto second = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->rules, (std::vector<double>{0.5, 9.0}));
}

// If the worker that writes a checkpoint fails, the job ends: on a full disk the next worker would
// fail in the same way.
TEST(Snapshots, EndTheJobIfTheAssignedWorkerFails) {
  StartedJob job(with_checkpoints(1));
  job.train(0, 1);
  job.freeze_and_copy({{0, 1, 1}});
  ASSERT_TRUE(job.take<wire::AssignmentT>(worker(0)));
  wire::FailingT failing;
  failing.reason = "no space left";
  job.send(worker(0), std::move(failing));
  EXPECT_FALSE(job.take<wire::AssignmentT>(worker(1)));
  ASSERT_TRUE(job.coordinator->failure());
  EXPECT_TRUE(contains(*job.coordinator->failure(), "no space left"));
}

TEST(Snapshots, AreDueAtMultiplesOfTheStepNumber) {
  JobCase job(with_checkpoints(4));
  wire::InitialisedT initialised;
  initialised.step = 3;
  initialised.offset = 6;
  job.start(initialised);
  job.train(0, 1);
  EXPECT_TRUE(job.take<wire::FreezeT>(server(0)));
}

// A round of 2 batches ends at step 3: step 2 has passed.
TEST(Snapshots, AreDueWhenARoundPassesAMultipleOfTheStepNumber) {
  wire::DeclarationT declaration = with_checkpoints(2);
  declaration.outer = std::make_unique<wire::OuterStepT>();
  StartedJob job(declaration);
  job.train(0, 1);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  wire::PushT round = make_push(2, job.lease(0));
  round.batches.push_back(to_wire(job.lease(0)));
  job.trained(0, 1, round);
  job.freeze_and_copy({{0, 1, 2}});
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_TRUE(assignment->writes_checkpoint);
  EXPECT_EQ(assignment->step, 3);
}

// The version of shard 0 counts from 1, also after a resume.
TEST(Snapshots, CountTheDisplacementsInTheValues) {
  wire::DeclarationT declaration = with_checkpoints(2);
  declaration.outer = std::make_unique<wire::OuterStepT>();
  JobCase job(declaration);
  wire::InitialisedT resumed;
  resumed.pushes = 10;
  job.start(resumed);
  job.version = 11;
  job.train(0, 1);
  job.train(0, 2);
  const SampleRange later = job.lease(0);
  job.freeze_all({{0, 1, 2}});
  job.trained(0, 3, later);  // not in the snapshot
  job.copy_all();
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->pushes, 12);
}

TEST(Snapshots, AreEvaluatedByStepsIfThatIsSet) {
  wire::DeclarationT declaration = make_declaration();
  declaration.eval_every_epochs = 1;
  declaration.eval_every_steps = 4;
  StartedJob job(declaration);
  for (std::uint64_t step = 1; step <= 3; ++step) job.train(0, step);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.train(0, 4);
  job.freeze_and_copy({{0, 1, 4}});
  const auto assignment = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(assignment);
  EXPECT_TRUE(assignment->evaluates);
  finish_assignment(job, 0, assignment->snapshot);
  job.train(0, 5);
  job.train(0, 6);  // ends epoch 0
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
}

TEST(Snapshots, AreEvaluatedAtMultiplesOfTheEpochNumber) {
  wire::DeclarationT declaration = make_declaration();
  declaration.total_epochs = 3;
  declaration.eval_every_epochs = 2;
  JobCase job(declaration);
  wire::InitialisedT initialised;
  initialised.epoch = 0;
  initialised.offset = 10;
  job.start(initialised);
  job.train(0, 1);  // ends epoch 0
  for (std::uint64_t step = 2; step <= 6; ++step) job.train(0, step);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  job.train(0, 7);  // ends epoch 1
  EXPECT_TRUE(job.take<wire::FreezeT>(server(0)));
}

TEST(Snapshots, CombinePurposesThatBecomeDueTogether) {
  wire::DeclarationT declaration = with_checkpoints(2);
  declaration.eval_every_epochs = 1;
  StartedJob job(declaration);
  job.train(0, 1);
  job.train(0, 2);
  for (std::uint64_t step = 3; step <= 6; ++step) job.train(0, step);
  job.freeze_and_copy({{0, 1, 2}});
  const auto first = job.take<wire::AssignmentT>(worker(0));
  EXPECT_TRUE(first->writes_checkpoint);
  EXPECT_FALSE(first->evaluates);
  finish_assignment(job, 0, first->snapshot);
  job.freeze_and_copy({{0, 1, 6}});
  const auto second = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->writes_checkpoint);
  EXPECT_TRUE(second->evaluates);
  finish_assignment(job, 0, second->snapshot);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
}

TEST(Snapshots, AreWrittenToFilesAfterACheckpointInProgress) {
  StartedJob job(with_checkpoints(1), 2, true);
  job.train(0, 1);
  job.freeze_and_copy({{0, 1, 1}});
  const auto checkpoint = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(checkpoint);
  job.coordinator->request_snapshot();
  finish_assignment(job, 0, checkpoint->snapshot);
  job.freeze_all({});
  // The snapshot takes longer than the interval, so it is still being written when the next one is
  // due.
  job.coordinator->request_snapshot();
  for (int s = 0; s < 2; ++s) {
    const auto snapshot = job.take<wire::SnapshotT>(server(s));
    ASSERT_TRUE(snapshot);
    EXPECT_TRUE(snapshot->to_file);
    wire::SnapshotDoneT done;
    done.snapshot = snapshot->snapshot;
    job.send(server(s), std::move(done));
  }
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
}

TEST(Snapshots, AreAssignedToTheNextWorkerIfTheFirstIsLost) {
  StartedJob job(with_checkpoints(1));
  job.train(0, 1);
  job.freeze_and_copy({{0, 1, 1}});
  const auto first = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(first);
  job.lose(worker(0));
  const auto second = job.take<wire::AssignmentT>(worker(1));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->snapshot, first->snapshot);
  finish_assignment(job, 1, second->snapshot);
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(0)));
}

TEST(Snapshots, AreAssignedAgainToAWorkerThatReconnects) {
  StartedJob job(with_checkpoints(1));
  job.train(0, 1);
  job.freeze_and_copy({{0, 1, 1}});
  const auto first = job.take<wire::AssignmentT>(worker(0));
  job.send_hello(job.worker_hello(0, 1));
  const auto again = job.take<wire::AssignmentT>(worker(0));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->snapshot, first->snapshot);
}

TEST(Snapshots, AreAbandonedIfAServerIsLostAndMadeLater) {
  StartedJob job(with_checkpoints(1), 2, true);
  job.request_snapshot();
  job.freeze_and_copy({});
  job.clear_messages();
  job.train(0, 1);
  const std::uint64_t first = job.take<wire::FreezeT>(server(0))->snapshot;
  job.lose(server(1));
  const auto release = job.take<wire::ReleaseT>(server(0));
  EXPECT_EQ(release->snapshot, first);
  EXPECT_TRUE(release->is_void);
  EXPECT_FALSE(job.take<wire::FreezeT>(server(0)));
  wire::HelloT hello = job.server_hello(1);
  hello.snapshots = {1};
  job.send_hello(hello);
  job.roll_back(1);
  const auto again = job.take<wire::FreezeT>(server(0));
  ASSERT_TRUE(again);
  EXPECT_GT(again->snapshot, first);
}

}  // namespace
}  // namespace syncopate::ps
