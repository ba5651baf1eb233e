// Tests a restart of server 0, which restarts the coordinator, too.
#include <gtest/gtest.h>

#include <array>
#include "models/base/errors.h"
#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

TEST(RestartedServer0, DoesNotRepeatNumbersAfterASecondRestartFromOneSnapshot) {
  StartedJob before(make_declaration(Consistency::kAsync), 1, true);
  const std::vector<std::byte> saved = before.save();
  for (const int life : {1, 2}) {
    Coordinator again({.nonce = "n", .servers = 1, .life = life});
    again.restore(saved);
    EXPECT_EQ(again.on_hello(before.server_hello(0)).incarnation,
              65536U * static_cast<unsigned>(life));
  }
}

TEST(RestartedServer0, DoesNotRepeatTheNumbersOfTasksThatWereRestartedOften) {
  StartedJob before(make_declaration(Consistency::kAsync), 1, true);
  const std::vector<std::byte> saved = before.save();
  std::uint32_t last = 0;
  for (int i = 0; i < 1200; ++i) {
    last = before.coordinator->on_hello(before.worker_hello(1)).incarnation;
    before.collect();
  }
  Coordinator again({.nonce = "n", .servers = 1, .life = 1});
  again.restore(saved);
  EXPECT_GT(again.on_hello(before.worker_hello(1)).incarnation, last);
}

TEST(RestartedServer0, EndsSnapshotsThatItsPredecessorBegan) {
  StartedJob before(make_declaration(Consistency::kAsync), 2, true);
  JobCase job(make_declaration(Consistency::kAsync), 2, true);
  job.coordinator->restore(before.save());
  job.send_hello(job.server_hello(1, 1));
  EXPECT_TRUE(job.take<wire::ReleaseT>(server(1)));
}

// A server that was restarted since the snapshot may still hold only the first values, and may
// carry out the order of the previous server 0 at any time.
TEST(RestartedServer0, RollsBackAServerThatWasRestartedSinceTheSnapshot) {
  StartedJob before(make_declaration(Consistency::kAsync), 2, true);
  JobCase job(make_declaration(Consistency::kAsync), 2, true);
  job.coordinator->restore(before.save());
  job.restart_server(0, {1});
  job.roll_back(0);
  wire::HelloT restarted = job.server_hello(1, 2);
  restarted.snapshots = {1};
  EXPECT_EQ(job.send_hello(restarted), "");
  const auto welcome = job.take<wire::WelcomeT>(server(1));
  ASSERT_TRUE(welcome);
  EXPECT_GT(welcome->incarnation, 2U);
  const auto back = job.take<wire::RollBackT>(server(1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->snapshot, 1U);
  EXPECT_EQ(back->incarnation, welcome->incarnation);

  job.send_hello(job.worker_hello(0, 1));
  // Returns the incarnation of server 1 in the last message with addresses; 0: it does not serve.
  const auto address = [&] {
    const wire::MessageT& last = job.received[worker(0)].back();
    const auto* const roster = last.body.AsRoster();
    return (roster != nullptr ? roster->servers : last.body.AsWelcome()->servers)[1]->incarnation;
  };
  EXPECT_EQ(address(), 0U);
  wire::RollBackT late = *back;  // the answer to the order of the previous server 0
  late.incarnation = 2;
  job.send(server(1), late);
  EXPECT_EQ(address(), 0U);
  job.send(server(1), *back);
  EXPECT_EQ(address(), welcome->incarnation);
}

TEST(RestartedServer0, ContinuesFromTheSnapshotAndGrantsOutstandingBatchesAgain) {
  StartedJob before(make_declaration(Consistency::kAsync), 2, true);
  before.train(0, 1);
  const SampleRange copied = before.lease(1);
  before.request_snapshot();
  before.freeze_all({{0, 1, 1}, {1, 1, 1}});
  before.trained(1, 1, copied);
  const SampleRange later = before.lease(1);
  before.trained(1, 2, later);
  const std::vector<std::byte> saved = *before.coordinator->save(1);

  JobCase job(make_declaration(Consistency::kAsync), 2, true);
  job.coordinator->restore(saved);
  EXPECT_TRUE(job.coordinator->has_started());
  EXPECT_EQ(job.coordinator->live_workers(), 0);
  EXPECT_EQ(job.coordinator->status().step, 2);
  EXPECT_EQ(job.coordinator->status().loss, 1.0);
  job.restart_server(0, {1});
  EXPECT_EQ(job.roll_back(0), 1U);
  wire::HelloT hello = job.server_hello(1, 1);
  EXPECT_EQ(job.send_hello(hello), "");
  hello = job.worker_hello(1);
  hello.incarnation = 1;
  hello.sequence = 2;
  EXPECT_EQ(job.send_hello(hello), "");
  EXPECT_TRUE(job.take<wire::WelcomeT>(worker(1)));
  job.coordinator->on_reconnect_timeout();  // worker 0 does not reconnect
  EXPECT_EQ(job.lease(1), later);
  // A restarted coordinator does not use numbers again that the previous server 0 may have given
  // out since the snapshot.
  job.send_hello(job.worker_hello(0));
  EXPECT_EQ(job.take<wire::WelcomeT>(worker(0))->incarnation, 65536U);
  job.send(worker(0), wire::ReadyT{});
  job.request_snapshot();
  EXPECT_EQ(job.take<wire::FreezeT>(server(0))->snapshot, (std::uint64_t{1} << 32U) + 1);
}

TEST(RestartedServer0, TellsHowManyStepsAreTrainedAgainOnceItsWorkersAreBack) {
  StartedJob before(make_declaration(Consistency::kAsync), 1, true);
  before.train(0, 1);
  const std::vector<std::byte> saved = before.save({{0, 1, 1}, {1, 1, 0}});

  // Returns the warnings about two workers that have made this many pushes.
  const auto warnings_of = [&](const std::array<std::uint64_t, 2>& pushes) {
    JobCase job(make_declaration(Consistency::kAsync), 1, true);
    job.coordinator->restore(saved);
    job.restart_server(0, {1});
    const auto back = job.take<wire::RollBackT>(server(0));
    EXPECT_TRUE(back && back->steps == -1) << "the workers have not told it yet";
    testing::internal::CaptureStderr();
    for (const int index : {0, 1}) {
      wire::HelloT hello = job.worker_hello(index, 1);
      hello.sequence = pushes.at(static_cast<std::size_t>(index));
      EXPECT_EQ(job.send_hello(hello), "");
    }
    job.coordinator->on_reconnect_timeout();
    return testing::internal::GetCapturedStderr();
  };
  const std::string err = warnings_of({4, 2});
  // Worker 0 has made pushes 2 to 4 since, worker 1 pushes 1 and 2.
  const std::string line =
      "up to 5 steps of workers after the last snapshot of server 0 are done again\n";
  EXPECT_TRUE(contains(err, line));
  EXPECT_EQ(err.find(line), err.rfind(line)) << err;
  EXPECT_TRUE(contains(warnings_of({2, 0}),
                       "up to 1 step of workers after the last snapshot of server 0 "
                       "is done again\n"));
  EXPECT_FALSE(contains(warnings_of({1, 0}), "last snapshot"));
}

TEST(RestartedServer0, RollsAllTasksBackToTheNewestCommonSnapshot) {
  StartedJob before(make_declaration(Consistency::kSync), 2, true);
  std::vector<std::vector<std::byte>> saved;
  for (std::uint64_t step = 1; step <= 2; ++step) {
    for (int w = 0; w < 2; ++w) {
      wire::PushT push;
      push.sequence = step;
      before.trained(w, 1, push);
    }
    before.request_snapshot();
    before.freeze_all({{0, 1, step}, {1, 1, step}});
    saved.push_back(*before.coordinator->save(step));
    before.copy_all();
  }

  JobCase job(make_declaration(Consistency::kSync), 2, true);
  for (const auto& bytes : saved) job.coordinator->restore(bytes);
  EXPECT_EQ(job.coordinator->status().step, 2);
  EXPECT_EQ(job.coordinator->missing_tasks(), "worker 0, worker 1, server 0, server 1");
  job.restart_server(0, {1, 2});
  wire::HelloT hello = job.worker_hello(0, 1);
  job.send_hello(hello);
  hello = job.server_hello(1);
  hello.incarnation = 1;
  hello.snapshots = {1};  // server 1 was still writing the second snapshot
  job.send_hello(hello);
  // Worker 1 reconnects after the servers and worker 0 have rolled back.
  EXPECT_EQ(job.roll_back(0), 1U);
  EXPECT_EQ(job.roll_back(1), 1U);
  EXPECT_EQ(job.take<wire::RollBackT>(worker(0))->snapshot, 1U);
  job.send_ready(0);
  EXPECT_FALSE(job.take<wire::StartT>(worker(0)));
  hello = job.worker_hello(1);
  hello.incarnation = 1;
  job.send_hello(hello);
  EXPECT_EQ(job.take<wire::RollBackT>(worker(1))->snapshot, 1U);
  job.send_ready(1);
  EXPECT_EQ(job.take<wire::StartT>(worker(0))->step, 1);
  EXPECT_EQ(job.take<wire::StartT>(worker(1))->step, 1);
}

// The file of shard 0 is written when its values are copied, which is after Freeze and Snapshot.
TEST(RestartedServer0, CountsExactlyTheBatchesThatAreInTheCopy) {
  StartedJob before(make_declaration(Consistency::kSsp), 1, true);
  before.train(0, 1);
  const SampleRange copied = before.lease(1);
  before.request_snapshot();
  before.freeze_all({{0, 1, 1}, {1, 1, 1}});
  EXPECT_FALSE(before.coordinator->save(2)) << "of another snapshot";
  before.trained(1, 1, copied);  // it was under way, and is in the copy
  before.train(1, 2);            // it is not in the copy
  const auto saved = before.coordinator->save(1);
  ASSERT_TRUE(saved);
  before.lose(server(0));
  EXPECT_FALSE(before.coordinator->save(1)) << "the snapshot was given up";

  JobCase job(make_declaration(Consistency::kSsp), 1, true);
  job.coordinator->restore(*saved);
  EXPECT_EQ(job.coordinator->status().samples, 4);
}

// Under async the workers go on while server 0 is restarted, with the batches that they hold.
TEST(RestartedServer0, LeavesWorkersTheBatchesThatTheyHold) {
  StartedJob before(make_declaration(Consistency::kAsync), 1, true);
  const std::vector<std::byte> saved = before.save();
  std::vector<SampleRange> held;
  for (int w : {0, 1, 1}) held.push_back(before.lease(w));

  JobCase job(make_declaration(Consistency::kAsync), 1, true);
  job.coordinator->restore(saved);
  const auto reconnect = [&](int w, const std::vector<SampleRange>& holds) {
    wire::HelloT hello = job.worker_hello(w, 1);
    for (const SampleRange& range : holds)
      hello.held.emplace_back(range.epoch, range.begin, range.end);
    EXPECT_EQ(job.send_hello(hello), "");
  };
  reconnect(1, {held[2]});
  wire::LeaseRequestT request;
  request.count = 1;
  job.send(worker(1), request);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(1))) << "worker 0 may hold this batch";
  reconnect(0, {held[0]});
  EXPECT_EQ(ranges_of(*job.take<wire::LeasesT>(worker(1))), std::vector{held[1]});
  EXPECT_EQ(job.lease(0), (SampleRange{0, 6, 8}));
  for (const int w : {0, 1}) job.trained(w, 1, held[w == 0 ? 0 : 2]);
  EXPECT_EQ(job.coordinator->status().samples, 4);
}

TEST(RestartedServer0, GrantsTheBatchesOfWorkersThatDoNotReconnectInTime) {
  StartedJob before(make_declaration(Consistency::kAsync), 1, true);
  JobCase job(make_declaration(Consistency::kAsync), 1, true);
  job.coordinator->restore(before.save());
  EXPECT_EQ(job.send_hello(job.worker_hello(1, 1)), "");
  wire::LeaseRequestT request;
  request.count = 1;
  job.send(worker(1), request);
  EXPECT_FALSE(job.take<wire::LeasesT>(worker(1)));
  job.coordinator->on_reconnect_timeout();
  job.collect();
  EXPECT_TRUE(job.take<wire::LeasesT>(worker(1)));
}

TEST(RestartedServer0, RefusesBytesThatAreNotASnapshot) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  std::vector<std::byte> saved = job.save();
  Coordinator other({.nonce = "n", .servers = 3});
  EXPECT_THROW(other.restore(saved), FileError);
  saved.resize(saved.size() / 2);
  Coordinator cut_short({.nonce = "n", .servers = 2});
  EXPECT_THROW(cut_short.restore(saved), FileError);
  EXPECT_THROW(cut_short.restore({}), FileError);
}

}  // namespace
}  // namespace syncopate::ps
