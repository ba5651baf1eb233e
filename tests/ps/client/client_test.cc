// A client whose connections break, or whose caller leaves, at the wrong time.
#include "ps/client/client.h"

#include <future>
#include <limits>

#include "models/base/errors.h"
#include "tests/ps/client/scripted_server.h"

namespace syncopate::ps::testing {
namespace {

TEST(AClient, SaysAgainThatItHasInitialisedUntilItHearsTheStart) {
  ScriptedServer server;
  const auto client = server.meet(1);
  client->initialised({.step = 5});
  EXPECT_EQ(server.await<wire::InitialisedT>(*server.control).step, 5);
  server.break_control();
  EXPECT_EQ(server.await<wire::InitialisedT>(*server.control).step, 5);
  server.await<wire::ReadyT>(*server.control);  // and that it waits for it
  wire::StartT start;
  start.step = 5;
  server.say(*server.control, start);
  EXPECT_EQ(client->wait_start().step, 5);
}

TEST(AClient, SaysAgainThatTheJobIsToStop) {
  ScriptedServer server;
  const auto client = server.meet(1);
  client->request_stop(StopKind::kSigterm);
  EXPECT_EQ(server.await<wire::StopRequestT>(*server.control).kind, 1);
  server.break_control();
  EXPECT_EQ(server.await<wire::StopRequestT>(*server.control).kind, 1);
}

TEST(AClient, NamesTheBatchesThatItHasWhenItsConnectionBreaks) {
  ScriptedServer server;
  const auto client = server.meet(1);
  auto first = std::async(std::launch::async, [&] { return client->next_lease(); });
  server.await<wire::LeaseRequestT>(*server.control);
  wire::LeasesT leases;
  leases.ranges.emplace_back(0, 4, 6);
  leases.ranges.emplace_back(0, 6, 8);
  leases.ranges.emplace_back(0, 8, 10);
  server.say(*server.control, std::move(leases));
  const auto trained = first.get();
  EXPECT_EQ(trained->begin, 4);
  EXPECT_EQ(client->next_lease()->begin, 6);  // whoever reads ahead
  client->begin_step({.batch = *trained, .samples = 2});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  wire::ValuesT answer;
  answer.sequence = 1;
  server.say(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  client->flush();
  const wire::HelloT hello = server.break_control();
  EXPECT_EQ(hello.incarnation, 1U);
  ASSERT_EQ(hello.held.size(), 2U);
  EXPECT_EQ(hello.held[0].begin(), 8);
  EXPECT_EQ(hello.held[1].begin(), 6);
}

TEST(AClient, TellsAShardThatCameBackInTheMiddleOfAStepWhatIsStillToCome) {
  ScriptedServer server;
  const auto client = server.meet(2);
  client->begin_step({.samples = 1});
  server.say(*server.control, server.roster(2));
  wire::DataHelloT hello = server.meet_data();
  EXPECT_EQ(hello.sequence, 0U);
  EXPECT_TRUE(hello.ahead.empty());
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U);
  wire::ValuesT answer;
  answer.bucket = 1;
  answer.sequence = 1;
  server.say(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  client->wait_values(1);
  server.say(*server.control, server.roster(3));
  hello = server.meet_data();
  EXPECT_EQ(hello.sequence, 0U);
  EXPECT_EQ(hello.ahead, std::vector<int>{1});
}

// What was said through the socket before may come later: shards know by the number which is newer.
TEST(AClient, CallsAShardByAHigherNumberAndAnotherNameThroughEachSocket) {
  ScriptedServer server;
  const auto client = server.meet(1);
  server.say(*server.control, server.roster(2));
  const std::uint64_t call = server.meet_data().call;
  const std::string name = server.data_peer();
  server.say(*server.control, server.roster(3));
  EXPECT_GT(server.meet_data().call, call);
  EXPECT_NE(server.data_peer(), name);
}

// As when a shard's socket has given its place to another one.
TEST(AClient, CallsAShardAnewThatHearsNothingOnAConnectionThatIsUp) {
  ScriptedServer server;
  server.answer_patience = std::chrono::milliseconds(100);
  const auto client = server.meet(1);
  client->begin_step({.samples = 1});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  const std::string name = server.data_peer();
  server.await<wire::DataHelloT>(*server.data);  // instead of an answer to its probes
  EXPECT_NE(server.data_peer(), name);
  server.say(*server.data, server.data_welcome);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U);
}

// Over a slow link the answer is only late, behind what was sent before it: calling anew at the
// same pace for ever would send all of that for ever.
TEST(AClient, WaitsLongerForAShardWithEachCallThatBringsNothing) {
  ScriptedServer server;
  server.answer_patience = std::chrono::milliseconds(100);
  const auto client = server.meet(1);
  client->begin_step({.samples = 1});
  const auto pushed = std::chrono::steady_clock::now();
  client->push(0);
  std::uint64_t call = 0;
  while (call < 4) call = server.await<wire::DataHelloT>(*server.data).call;
  // Two seconds to the probe, then 100, 200 and 400 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - pushed, std::chrono::milliseconds(2700));
}

TEST(AClient, WritesNoCopyForACallerThatHasLeft) {
  ScriptedServer server;
  const auto client = server.meet(1);
  client->begin_step({.samples = 1});
  client->push(0);
  server.await<wire::PushT>(*server.data);
  std::vector<float> copy(8, 7.0F);
  auto read = std::async(std::launch::async, [&] { client->read_cut(wire::kLiveCut, copy, {}); });
  server.await<wire::ReadCutT>(*server.data);
  client->abort("enough");
  EXPECT_THROW(read.get(), PeerError);
  server.say(*server.data, wire::CutValuesT(), std::vector<float>(8, 1.0F));
  // What comes behind it has arrived: so has it.
  wire::ValuesT answer;
  answer.sequence = 1;
  server.say(*server.data, std::move(answer), std::vector<float>(8, 3.0F));
  EXPECT_TRUE(wire::wait_until({server.control.get(), server.data.get()},
                               [&] { return client->traffic().bytes_pulled > 0; }));
  EXPECT_EQ(copy, std::vector<float>(8, 7.0F));
}

// A bucket is 32 bytes. What has not been sent has no answer: one that says so is passed over, and
// what it is about is sent once more over the next connection.
TEST(AClient, ThatSharesASegmentWritesNoMoreAtOnceThanItsCredit) {
  ScriptedServer server;
  server.data_welcome.uses_segment = true;
  server.data_welcome.credit_bytes = 32;
  const auto client = server.meet(2);
  const std::vector<float> values(16, 1.0F);
  auto write = std::async(std::launch::async, [&] { client->write_variables(values, {}, 0); });
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 0);
  wire::WrittenT written;
  for (const int bucket : {1, 0}) {
    written.bucket = bucket;
    server.say(*server.data, written);
  }
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 1);
  server.say(*server.control, server.roster(2));
  server.meet_data();
  EXPECT_EQ(server.await<wire::WriteT>(*server.data).bucket, 1) << "it was sent too early";
  client->abort("enough");
}

TEST(AClient, ThatSharesASegmentPushesNoMoreCompressedAtOnceThanItsCredit) {
  ScriptedServer server;
  server.data_welcome.uses_segment = true;
  server.data_welcome.credit_bytes = 16;
  server.compression.codec = Codec::kBf16;
  const auto client = server.meet(2);
  client->begin_step({.samples = 1});
  client->push(0);
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 0);
  wire::ValuesT answer;
  answer.sequence = 1;
  answer.in_segment = true;
  for (const int bucket : {1, 0}) {
    answer.bucket = bucket;
    server.say(*server.data, wire::ValuesT(answer));
  }
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1);
  server.say(*server.control, server.roster(2));
  server.meet_data();
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1) << "it was sent too early";
  client->abort("enough");
}

// A cut that is given up answers nobody, and the next one may wait for this push.
TEST(AClient, PushesThoughCopiesThatHaveNoAnswerHoldAllItsCredit) {
  ScriptedServer server;
  server.data_welcome.credit_bytes = 32;
  const auto client = server.meet(2);
  std::vector<float> copy(16);
  auto read = std::async(std::launch::async, [&] { client->read_cut(wire::kLiveCut, copy, {}); });
  EXPECT_EQ(server.await<wire::ReadCutT>(*server.data).bucket, 0);
  client->begin_step({.samples = 1});
  client->push(1);
  EXPECT_EQ(server.await<wire::PushT>(*server.data).bucket, 1);
  client->abort("enough");
  EXPECT_THROW(read.get(), PeerError);
}

TEST(AClient, EndsWithALineWhenAShardDropsItsPushAgainAndAgain) {
  ScriptedServer server;
  const auto client = server.meet(1);
  client->begin_step({.samples = 1});
  client->push(0);
  for (int sent = 0; sent < 6; ++sent) {
    ASSERT_EQ(server.await<wire::PushT>(*server.data).sequence, 1U) << sent;
    wire::ProbeAnswerT answer;
    answer.sequence = 1;
    server.say(*server.data, std::move(answer));
  }
  auto flushed = std::async(std::launch::async, [&] { client->flush(); });
  const bool has_ended = wire::wait_until({server.control.get(), server.data.get()}, [&] {
    return flushed.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  EXPECT_TRUE(has_ended);
  client->abort("enough");
  try {
    flushed.get();
    FAIL() << "it waited for nothing";
  } catch (const PeerError& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find("server 0 at 127.0.0.1:"), 0U) << line;
    EXPECT_NE(line.find("bucket 0 (F32, 32 bytes) 6 times"), std::string::npos) << line;
  }
}

TEST(AClient, ThatLeavesComesBackWhenTheServersGoBackMeanwhile) {
  ScriptedServer server;
  const auto client = server.meet(1);
  auto left = std::async(std::launch::async, [&] { client->leave(); });
  server.await<wire::LeavingT>(*server.control);
  wire::RollBackT back;
  back.cut = 1;
  back.incarnation = 2;
  server.say(*server.control, back);
  server.say(*server.control, server.roster(2));
  server.meet_data();
  EXPECT_EQ(server.await<wire::ReadyT>(*server.control).incarnation, 2U);
  server.say(*server.control, wire::StartT());
  EXPECT_THROW(left.get(), RolledBack);
}

}  // namespace
}  // namespace syncopate::ps::testing
