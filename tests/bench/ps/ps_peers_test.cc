// Checks that both ends of each raw transport peer transfer every byte correctly. Speed is not
// tested.
#include "bench/ps/peers/ps_peers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/contest.h"
#include "bench/harness/measure.h"
#include "bench/ps/peers/exchange.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

std::vector<std::string> command_for(const std::string& transport) {
  return {SYNCOPATE_PS_PEER_PROGRAM, std::string(kPsPeerRank), "--transport", transport};
}

class PsPeer : public testing::TestWithParam<const char*> {};

// The peer exchanges 256 bytes, one full frame, three frames of which the last is partial, and a
// smaller size again.
TEST_P(PsPeer, TransfersEveryByteInBothDirections) {
  Peer peer({.command = command_for(GetParam())});
  for (const char* bytes : {"256", "1048576", "2500004", "4"}) {
    const PeerAnswer answer = peer.ask("run " + std::string(bytes) + " 3", 3);
    ASSERT_EQ(answer.seconds.size(), 3U) << bytes;
    for (const double seconds : answer.seconds) EXPECT_GT(seconds, 0.0) << bytes;
  }
}

TEST_P(PsPeer, SplitsAnExchangeIntoMessagesOfAnySize) {
  Peer peer({.command = command_for(GetParam())});
  EXPECT_EQ(peer.ask(exchange_command({.bytes = 5000, .message_bytes = 256}, 2), 2).seconds.size(),
            2U);
}

TEST_P(PsPeer, RefusesWhatItDoesNotUnderstand) {
  Peer peer({.command = command_for(GetParam())});
  EXPECT_THROW((void)peer.ask("run 6 1", 1), PeerError);
}

INSTANTIATE_TEST_SUITE_P(Transports, PsPeer,
                         testing::Values("zmq", "zmq-copied", "tcp", "shm-copied"),
                         [](const testing::TestParamInfo<const char*>& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PsPeers, WithAnUnknownNameAreAUsageError) {
  try {
    (void)find_ps_peers({"udp"}, "/nowhere/syncopate-bench");
    FAIL() << "found a peer 'udp'";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--peers udp: no such peer; choose from zmq, zmq-copied, tcp, shm-copied, "
                 "ps-lite, or none");
  }
}

// ZeroMQ has no option for TCP's congestion control, so a preloaded library sets it. A peer that
// was asked for and is not built is an error; the others take part without it.
TEST(PsPeers, ThatAreNotBuiltAreNamedAndLeftOut) {
  for (const char* name : {"zmq", "ps-lite"}) {
    EXPECT_THROW((void)find_ps_peers({name}, "/nowhere/syncopate-bench"), UnavailableError);
  }
  const PsPeers peers = find_ps_peers({}, "/nowhere/syncopate-bench");
  ASSERT_EQ(peers.sides.size(), 2U);
  EXPECT_TRUE(peers.sides[0].tcp);
  EXPECT_FALSE(peers.sides[1].tcp);
  EXPECT_EQ(
      peers.sides[0].command,
      (std::vector<std::string>{"/nowhere/syncopate-bench", "ps-peer-rank", "--transport", "tcp"}));
  ASSERT_EQ(peers.absent.size(), 3U);
  EXPECT_NE(peers.absent[2].find("peer ps-lite needs /nowhere/peers/ps_lite_exchange"),
            std::string::npos)
      << peers.absent[2];
  EXPECT_NE(peers.absent[2].find("build_ps_lite.sh"), std::string::npos) << peers.absent[2];
}

TEST(ExchangeContest, ReportsEverySideAndHoldsOursAgainstTheBestPeer) {
  std::vector<Contestant> contestants;
  contestants.emplace_back(
      ContestSide{.name = "ours, tcp", .ours = true, .tcp = true, .command = command_for("tcp")});
  contestants.emplace_back(ContestSide{.name = "tcp", .tcp = true, .command = command_for("tcp")});
  contestants.emplace_back(ContestSide{.name = "shm-copied", .command = command_for("shm-copied")});
  const Rounds rounds = take_exchange_rounds(contestants, {.bytes = 256}, 2, 0.001);
  const std::string table = exchange_table("256", {.bytes = 256}, contestants, rounds);
  EXPECT_NE(table.find(" x tcp"), std::string::npos) << table;
  const auto report = exchange_json({.bytes = 256}, contestants, rounds);
  ASSERT_EQ(report["sides"].size(), 3U);
  EXPECT_EQ(report["sides"][0]["best_peer"], "tcp");  // Shared memory is not compared with TCP.
  EXPECT_EQ(report["sides"][2]["seconds_per_round"].size(), 2U);
  EXPECT_LE(report["sides"][2]["seconds_p50"], report["sides"][2]["seconds_p99"]);
}

}  // namespace
}  // namespace syncopate::bench
