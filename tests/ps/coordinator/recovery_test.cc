// Tests how a coordinator recovers the job after a server was restarted.
#include <gtest/gtest.h>

#include "tests/ps/coordinator/coordinator_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps {
namespace {

TEST(ARestartedServer, RollsBackAloneUnderAsync) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  job.train(0, 1);
  const std::uint64_t first = job.make_snapshot({{0, 1, 1}});
  const std::uint64_t second = job.make_snapshot({{0, 1, 1}});
  job.lose(server(1));
  job.clear_messages();
  job.restart_server(1, {first, second});
  EXPECT_EQ(job.take<wire::WelcomeT>(server(1))->incarnation, 2U);
  EXPECT_FALSE(job.take<wire::RosterT>(worker(0)));
  EXPECT_EQ(job.roll_back(1), second);
  const auto roster = job.take<wire::RosterT>(worker(0));
  ASSERT_TRUE(roster);
  EXPECT_EQ(roster->servers[1]->endpoint, "h:5000");
  EXPECT_EQ(roster->servers[1]->incarnation, 2U);
  EXPECT_FALSE(job.take<wire::RollBackT>(server(0)));
  EXPECT_FALSE(job.take<wire::RollBackT>(worker(0)));
  EXPECT_EQ(job.coordinator->status().step, 1);
  job.train(1, 1);
}

TEST(ARestartedServer, LearnsHowManyStepsItsSnapshotLacksAndWhetherTheyAreTrainedAgain) {
  for (const Consistency consistency : {Consistency::kAsync, Consistency::kSsp}) {
    StartedJob job(make_declaration(consistency), 2, true);
    job.train(0, 1);
    const std::uint64_t first = job.make_snapshot({{0, 1, 1}});
    job.train(0, 2);
    job.train(1, 1);
    const std::uint64_t second = job.make_snapshot({{0, 1, 2}, {1, 1, 1}});
    job.train(0, 3);
    job.lose(server(1));
    job.clear_messages();
    job.restart_server(1, {first});  // its second snapshot file is lost
    auto back = job.take<wire::RollBackT>(server(1));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->steps, 3);
    EXPECT_EQ(back->redone, consistency == Consistency::kSsp);

    StartedJob other(make_declaration(consistency), 2, true);
    other.train(0, 1);
    other.make_snapshot({{0, 1, 1}});
    other.lose(server(1));
    other.clear_messages();
    other.restart_server(1, {second - 1});
    back = other.take<wire::RollBackT>(server(1));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->steps, 0) << "no step ended after the snapshot";
  }
}

TEST(ARestartedServer, EndsTheJobWithoutASnapshot) {
  for (const bool keeps_snapshots : {true, false}) {
    StartedJob job(make_declaration(Consistency::kAsync), 2, keeps_snapshots);
    job.lose(server(1));
    job.restart_server(1, {});
    const std::string line = *job.coordinator->failure();
    EXPECT_EQ(line.find("server 1 reconnected without a snapshot"), 0U) << line;
    EXPECT_TRUE(contains(line, keeps_snapshots ? "--resume" : "--checkpoint-dir"));
    EXPECT_TRUE(job.coordinator->has_lost_variables());
  }
}

TEST(ARestartedServer, IgnoresFilesOfSnapshotsOfAnotherJob) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.restart_server(1, {snapshot, snapshot + 7});
  EXPECT_EQ(job.roll_back(1), snapshot);
}

// The server is killed after it has written the snapshot file and before it reports the file, and
// restarts before its timeout passes.
TEST(ARestartedServer, KeepsTheFileOfASnapshotThatItDidNotReport) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  const std::uint64_t before = job.make_snapshot({});
  job.request_snapshot();
  job.freeze_all({});
  const std::uint64_t snapshot = job.take<wire::SnapshotT>(server(1))->snapshot;
  job.clear_messages();
  job.restart_server(1, {before, snapshot});
  EXPECT_FALSE(job.take<wire::ReleaseT>(server(1)));
  EXPECT_EQ(job.roll_back(1), snapshot);
}

TEST(ARestartedServer, RollsAllTasksBackUnderSsp) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  job.train(0, 1);
  const std::uint64_t first = job.make_snapshot({{0, 1, 1}});
  job.train(1, 1);
  job.make_snapshot({{0, 1, 1}, {1, 1, 1}});
  const SampleRange held = job.lease(1);
  job.lose(server(1));
  job.restart_server(1, {first});  // its second snapshot file is lost
  EXPECT_EQ(job.roll_back(0), first);
  EXPECT_EQ(job.roll_back(1), first);
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(job.take<wire::RollBackT>(worker(w))->snapshot, first);
    job.send_ready(w);
  }
  const auto start = job.take<wire::StartT>(worker(1));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->step, 1);
  EXPECT_EQ(start->offset, 2);
  EXPECT_EQ(job.lease(0), (SampleRange{0, 2, 4}));
  EXPECT_EQ(job.lease(0), held);
}

// The server reports that the snapshot file that it was told to restore is damaged; returns the
// snapshot's number.
std::uint64_t find_damaged(JobCase& job, int index) {
  auto back = job.take<wire::RollBackT>(server(index));
  if (!back) {
    ADD_FAILURE() << "server " << index << " did not receive RollBack";
    return 0;
  }
  back->lost = true;
  job.send(server(index), *back);
  return back->snapshot;
}

TEST(ARestartedServer, RollsBackToAnOlderFileIfTheNewestIsDamaged) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  const std::uint64_t first = job.make_snapshot({});
  const std::uint64_t second = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {first, second});
  while (job.take<wire::RosterT>(worker(0))) {
  }
  EXPECT_EQ(find_damaged(job, 1), second);
  EXPECT_FALSE(job.take<wire::RosterT>(worker(0))) << "it does not serve yet";
  EXPECT_EQ(job.roll_back(1), first);
  EXPECT_TRUE(job.take<wire::RosterT>(worker(0)));
}

TEST(ARestartedServer, RollsAllTasksBackFurtherIfOneFileIsDamaged) {
  for (const bool is_found_first : {true, false}) {
    StartedJob job(make_declaration(Consistency::kSsp), 2, true);
    job.train(0, 1);
    const std::uint64_t first = job.make_snapshot({{0, 1, 1}});
    job.train(1, 1);
    const std::uint64_t second = job.make_snapshot({{0, 1, 1}, {1, 1, 1}});
    job.lose(server(1));
    job.restart_server(1, {first, second});
    if (is_found_first) {
      EXPECT_EQ(find_damaged(job, 1), second);
    }
    EXPECT_EQ(job.roll_back(0), second);
    if (!is_found_first) {
      EXPECT_EQ(find_damaged(job, 1), second);
    }
    EXPECT_FALSE(job.take<wire::RollBackT>(worker(0))) << "to what not all have";
    EXPECT_EQ(job.roll_back(0), first);
    EXPECT_EQ(job.roll_back(1), first);
    for (int w = 0; w < 2; ++w) {
      EXPECT_EQ(job.take<wire::RollBackT>(worker(w))->snapshot, first);
      job.send_ready(w);
    }
    EXPECT_EQ(job.take<wire::StartT>(worker(1))->step, 1);
  }
}

TEST(ARestartedServer, EndsTheJobIfAllItsFilesAreDamaged) {
  StartedJob job(make_declaration(Consistency::kAsync), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  EXPECT_EQ(find_damaged(job, 1), snapshot);
  ASSERT_TRUE(job.coordinator->failure());
  EXPECT_EQ(job.coordinator->failure()->find("server 1 reconnected without a snapshot"), 0U);
}

TEST(ARestartedServer, RollsBackAWorkerThatIsJoining) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(worker(1));
  job.send_hello(job.worker_hello(1));
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.roll_back(0);
  job.roll_back(1);
  job.send_ready(0);
  EXPECT_TRUE(job.take<wire::RollBackT>(worker(1)));
  job.send(worker(1), wire::ReadyT{});  // worker 1 sends this before it receives RollBack
  EXPECT_FALSE(job.take<wire::StartT>(worker(0)));
  job.send_ready(1);
  EXPECT_TRUE(job.take<wire::StartT>(worker(0)));
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

TEST(ARestartedServer, SendsRollBackAgainToAWorkerThatReconnects) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.roll_back(0);
  job.roll_back(1);
  job.send_ready(0);
  job.clear_messages();  // worker 1 does not receive the messages
  EXPECT_EQ(job.send_hello(job.worker_hello(1, 1)), "");
  // A worker that reconnects gets RollBack first: it must drop its void requests before it connects
  // to the restarted servers.
  EXPECT_TRUE(job.take<wire::WelcomeT>(worker(1))->servers.empty());
  EXPECT_EQ(job.take<wire::RollBackT>(worker(1))->snapshot, snapshot);
  EXPECT_TRUE(job.take<wire::RosterT>(worker(1)));
  job.send_ready(1);
  EXPECT_TRUE(job.take<wire::StartT>(worker(0)));
  EXPECT_TRUE(job.take<wire::StartT>(worker(1)));
}

// The worker would send its unanswered push, which the roll-back voids, to the server that has gone
// back already.
TEST(ARestartedServer, HidesTheAddressesOfServersUntilAllHaveRolledBack) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  EXPECT_EQ(job.roll_back(0), snapshot);
  job.clear_messages();
  EXPECT_EQ(job.send_hello(job.worker_hello(1, 1)), "");
  const auto welcome = job.take<wire::WelcomeT>(worker(1));
  ASSERT_TRUE(welcome);
  for (const auto& address : welcome->servers) EXPECT_EQ(address->incarnation, 0U);
}

TEST(ARestartedServer, VoidsEarlierTexts) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  const auto send = [&](int w, std::uint8_t text) {
    wire::ExchangeT exchange;
    exchange.round = 1;
    exchange.text = {text};
    job.send(worker(w), std::move(exchange));
  };
  send(0, 'a');
  send(1, 'b');
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.roll_back(0);
  job.roll_back(1);
  send(0, 'c');  // was in transit during the roll-back
  job.clear_messages();
  for (int w = 0; w < 2; ++w) job.send_ready(w);
  send(1, 'd');
  EXPECT_FALSE(job.take<wire::ExchangedT>(worker(1)));
  send(0, 'e');
  const auto exchanged = job.take<wire::ExchangedT>(worker(1));
  ASSERT_TRUE(exchanged);
  EXPECT_EQ(exchanged->texts[0]->text, std::vector<std::uint8_t>{'e'});
  EXPECT_EQ(exchanged->texts[1]->text, std::vector<std::uint8_t>{'d'});
}

TEST(ARestartedServer, GivesAllServersANewIncarnationAndSendsRollBackFirst) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.clear_messages();
  wire::RollBackT back;
  back.snapshot = snapshot;
  job.send(server(0), back);
  back.incarnation = 1;  // an answer as the incarnation before the restart
  job.send(server(1), back);
  EXPECT_TRUE(job.received[worker(0)].empty());
  back.incarnation = 2;
  job.send(server(1), back);
  ASSERT_EQ(job.received[worker(0)].size(), 2U);
  EXPECT_EQ(job.received[worker(0)][0].body.type, wire::Body::RollBack);
  const wire::RosterT* const roster = job.received[worker(0)][1].body.AsRoster();
  ASSERT_NE(roster, nullptr);
  EXPECT_EQ(roster->servers[0]->incarnation, 2U);
  EXPECT_EQ(roster->servers[1]->incarnation, 2U);
}

TEST(ARestartedServer, VoidsEarlierPushes) {
  StartedJob job(make_declaration(Consistency::kSsp), 2, true);
  const std::uint64_t snapshot = job.make_snapshot({});
  const SampleRange batch = job.lease(0);
  job.lose(server(1));
  job.restart_server(1, {snapshot});
  job.roll_back(0);
  job.roll_back(1);
  job.trained(0, 1, batch);
  for (int w = 0; w < 2; ++w) job.send_ready(w, 1);
  job.trained(0, 1, batch);
  EXPECT_EQ(job.coordinator->status().step, 0);
  EXPECT_EQ(job.lease(0), batch);
  job.trained(0, 2, batch);
  EXPECT_EQ(job.coordinator->status().step, 1);
}

}  // namespace
}  // namespace syncopate::ps
