// Tests a client whose connections break, or whose caller stops waiting, in the middle of a
// request.
#include "ps/client/client.h"

#include <future>

#include "models/base/errors.h"
#include "tests/ps/client/scripted_server.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps::testing {
namespace {

TEST(Client, SendsInitialisedAgainUntilTrainingStarts) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  client->initialised({.step = 5});
  EXPECT_EQ(server.await<wire::InitialisedT>(*server.control).step, 5);
  server.break_control();
  EXPECT_EQ(server.await<wire::InitialisedT>(*server.control).step, 5);
  server.await<wire::ReadyT>(*server.control);  // the client waits for the start
  wire::StartT start;
  start.step = 5;
  server.send(*server.control, start);
  EXPECT_EQ(client->wait_start().step, 5);
}

// A server that will not come back, and whose rendezvous timeout is long.
TEST(Client, GivesUpAServerThatIsGoneBeforeTheWelcome) {
  ScriptedServer server;
  std::vector<float> values(8);
  ClientOptions options{.rendezvous = server.rendezvous(),
                        .values = values,
                        .gradients = values,
                        .rendezvous_timeout = std::chrono::hours(1),
                        .server_timeout = std::chrono::milliseconds(100)};
  options.declaration.workers = 1;
  options.declaration.buckets.emplace_back(0, 8, 0);
  auto joined = std::async(std::launch::async, [&]() -> std::string {
    try {
      const Client client(options);
      return "it has joined";
    } catch (const PeerError& error) {
      return error.what();
    }
  });
  server.await<wire::HelloT>(*server.control);
  server.control.reset();
  const std::string seen = joined.get();
  EXPECT_TRUE(contains(seen, "its connection closed before all tasks had registered"));
}

TEST(Client, SendsAStopRequestAgainAfterAReconnect) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  client->request_stop(StopKind::kSigterm);
  EXPECT_EQ(server.await<wire::StopRequestT>(*server.control).kind, 1);
  server.break_control();
  EXPECT_EQ(server.await<wire::StopRequestT>(*server.control).kind, 1);
}

// Messages of a lost connection may be received after the Hello of the next one, which did not list
// their batches: server 0 grants these to other workers.
TEST(Client, DropsTheBatchesAfterAWelcomeOfALostConnection) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  auto lease = std::async(std::launch::async, [&] { return client->next_lease(); });
  server.await<wire::LeaseRequestT>(*server.control);
  const auto send_lease = [&](int begin) {
    wire::LeasesT leases;
    leases.ranges.emplace_back(0, begin, begin + 2);
    server.send(*server.control, std::move(leases));
  };
  server.break_control([&] {
    server.send(*server.control, server.welcome(1));
    send_lease(4);
  });
  server.await<wire::LeaseRequestT>(*server.control);
  send_lease(6);
  EXPECT_EQ(lease.get()->begin, 6);
}

TEST(Client, ListsItsBatchesWhenItReconnects) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  auto first = std::async(std::launch::async, [&] { return client->next_lease(); });
  server.await<wire::LeaseRequestT>(*server.control);
  wire::LeasesT leases;
  leases.ranges.emplace_back(0, 4, 6);
  leases.ranges.emplace_back(0, 6, 8);
  leases.ranges.emplace_back(0, 8, 10);
  server.send(*server.control, std::move(leases));
  const auto trained = first.get();
  EXPECT_EQ(trained->begin, 4);
  EXPECT_EQ(client->next_lease()->begin, 6);  // the input asks for batches ahead of the training
  client->begin_step({.batches = {*trained}, .samples = 2});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  wire::ValuesT answer;
  answer.sequence = 1;
  server.send(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  client->flush();
  const wire::HelloT hello = server.break_control();
  EXPECT_EQ(hello.incarnation, 1U);
  ASSERT_EQ(hello.held.size(), 2U);
  EXPECT_EQ(hello.held[0].begin(), 8);
  EXPECT_EQ(hello.held[1].begin(), 6);
}

TEST(Client, ReportsThePendingPushesOfTheStepToARestartedShard) {
  ScriptedServer server;
  const auto client = server.make_client(2);
  client->begin_step({.samples = 1});
  server.send(*server.control, server.roster(2));
  wire::DataHelloT hello = server.answer_data_hello();
  EXPECT_EQ(hello.sequence, 0U);
  EXPECT_TRUE(hello.ahead.empty());
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U);
  wire::ValuesT answer;
  answer.bucket = 1;
  answer.sequence = 1;
  server.send(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  client->wait_values(1);
  server.send(*server.control, server.roster(3));
  hello = server.answer_data_hello();
  EXPECT_EQ(hello.sequence, 0U);
  EXPECT_EQ(hello.ahead, std::vector<int>{1});
}

TEST(Client, SendsTheTokenOfTheLastWelcomeWithEveryMessageToAShard) {
  ScriptedServer server;
  server.data_welcome.session = 41;
  const auto client = server.make_client(1);
  client->begin_step({.samples = 1});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  EXPECT_EQ(server.session(), 41U);
  server.await<wire::ProbeT>(*server.data);  // the push has no answer
  EXPECT_EQ(server.session(), 41U);
  server.data_welcome.session = 42;
  server.send(*server.control, server.roster(2));
  server.answer_data_hello();
  EXPECT_EQ(server.session(), 0U);
  server.await<wire::PushT>(*server.data);
  EXPECT_EQ(server.session(), 42U);
}

// The client numbers its data connections: messages of an earlier connection may arrive later, and
// the number tells the shard which connection is newer.
TEST(Client, UsesAHigherNumberForEachConnection) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  server.send(*server.control, server.roster(2));
  const std::uint64_t call = server.answer_data_hello().call;
  server.send(*server.control, server.roster(3));
  EXPECT_GT(server.answer_data_hello().call, call);
}

TEST(Client, ReconnectsWhenAnOpenConnectionBringsNoAnswer) {
  ScriptedServer server;
  server.answer_timeout = std::chrono::milliseconds(100);
  const auto client = server.make_client(1);
  client->begin_step({.samples = 1});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  const std::string name = server.data_peer();
  server.await<wire::DataHelloT>(*server.data);  // after the client's probe had no answer
  EXPECT_NE(server.data_peer(), name);
  server.send(*server.data, server.data_welcome);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U);
}

// Over a slow link an answer may only be late, behind earlier messages. A client that reconnected
// at a constant rate would send its requests again each time and never get an answer.
TEST(Client, WaitsLongerForAShardWithEachUnansweredConnection) {
  ScriptedServer server;
  server.answer_timeout = std::chrono::milliseconds(100);
  const auto client = server.make_client(1);
  client->begin_step({.samples = 1});
  const auto pushed = std::chrono::steady_clock::now();
  client->push(0);
  std::uint64_t call = 0;
  while (call < 4) call = server.await<wire::DataHelloT>(*server.data).call;
  // The client waits two seconds until it probes, then has timeouts of 100, 200 and 400 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - pushed, std::chrono::milliseconds(2700));
}

TEST(Client, DoesNotWriteASnapshotForACallerThatHasLeft) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  client->begin_step({.samples = 1});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  std::vector<float> copy(8, 7.0F);
  auto read =
      std::async(std::launch::async, [&] { client->read_snapshot(wire::kLiveSnapshot, copy, {}); });
  server.await<wire::ReadSnapshotT>(*server.data);
  client->abort("enough");
  EXPECT_THROW(read.get(), PeerError);
  server.send(*server.data, wire::SnapshotValuesT(), std::vector<float>(8, 1.0F));
  // The client has received the values of the snapshot when it has received a later message.
  wire::ValuesT answer;
  answer.sequence = 1;
  server.send(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  EXPECT_TRUE(wire::wait_until({server.control.get(), server.data.get()},
                               [&] { return client->traffic().bytes_pulled > 0; }));
  EXPECT_EQ(copy, std::vector<float>(8, 7.0F));
}

// With a shared-memory segment, the client stays within the credit of 32 bytes, which is one
// bucket. It ignores an answer to a request that it has not sent, and sends the request over the
// next connection.
TEST(Client, WithASegmentWritesWithinItsCredit) {
  ScriptedServer server;
  server.data_welcome.uses_segment = true;
  server.data_welcome.credit_bytes = 32;
  const auto client = server.make_client(2);
  const std::vector<float> values(16, 1.0F);
  auto write = std::async(std::launch::async, [&] { client->write_variables(values, {}, 0); });
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 0);
  wire::WrittenT written;
  for (const int bucket : {1, 0}) {
    written.bucket = bucket;
    server.send(*server.data, written);
  }
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 1);
  server.send(*server.control, server.roster(2));
  server.answer_data_hello();
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 1)
      << "the request was sent before there was credit";
  client->abort("enough");
}

TEST(Client, WithASegmentSendsCompressedPushesWithinItsCredit) {
  ScriptedServer server;
  server.data_welcome.uses_segment = true;
  server.data_welcome.credit_bytes = 16;
  server.compression.codec = Codec::kBf16;
  const auto client = server.make_client(2);
  client->begin_step({.samples = 1});
  client->push(0);
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 0);
  wire::ValuesT answer;
  answer.sequence = 1;
  answer.in_segment = true;
  for (const int bucket : {1, 0}) {
    answer.bucket = bucket;
    server.send(*server.data, wire::ValuesT(answer));
  }
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1);
  server.send(*server.control, server.roster(2));
  server.answer_data_hello();
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1)
      << "the request was sent before there was credit";
  client->abort("enough");
}

// A shard never answers a read of a withdrawn snapshot. Such reads must not delay a push of the
// client, because the next snapshot may wait for the push.
TEST(Client, PushesWhileUnansweredReadsHoldAllItsCredit) {
  ScriptedServer server;
  server.data_welcome.credit_bytes = 32;
  const auto client = server.make_client(2);
  std::vector<float> copy(16);
  auto read =
      std::async(std::launch::async, [&] { client->read_snapshot(wire::kLiveSnapshot, copy, {}); });
  EXPECT_EQ(server.await<wire::ReadSnapshotT>(*server.data).bucket, 0);
  client->begin_step({.samples = 1});
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1);
  client->abort("enough");
  EXPECT_THROW(read.get(), PeerError);
}

TEST(Client, FailsWhenAShardDropsItsPushRepeatedly) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  client->begin_step({.samples = 1});
  client->push(0);
  for (int sent = 0; sent < 6; ++sent) {
    ASSERT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U) << sent;
    wire::ProbeAnswerT answer;
    answer.unknown.emplace_back(0, 1);
    server.send(*server.data, std::move(answer));
  }
  auto flushed = std::async(std::launch::async, [&] { client->flush(); });
  const bool has_ended = wire::wait_until({server.control.get(), server.data.get()}, [&] {
    return flushed.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  EXPECT_TRUE(has_ended);
  client->abort("enough");
  const std::string line = message_of<PeerError>([&] { flushed.get(); });
  EXPECT_EQ(line.find("server 0 at 127.0.0.1:"), 0U) << line;
  EXPECT_TRUE(contains(line, "bucket 0 (F32, 32 bytes) 6 times"));
}

TEST(Client, ThatLeavesIsRolledBackWithTheServers) {
  ScriptedServer server;
  const auto client = server.make_client(1);
  auto left = std::async(std::launch::async, [&] { client->leave(); });
  server.await<wire::LeavingT>(*server.control);
  wire::RollBackT back;
  back.snapshot = 1;
  back.incarnation = 2;
  server.send(*server.control, back);
  server.send(*server.control, server.roster(2));
  server.answer_data_hello();
  EXPECT_EQ(server.await<wire::ReadyT>(*server.control).incarnation, 2U);
  server.send(*server.control, wire::StartT());
  EXPECT_THROW(left.get(), RolledBack);
}

}  // namespace
}  // namespace syncopate::ps::testing
