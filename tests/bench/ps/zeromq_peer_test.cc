// Checks that both ends of the raw transport transfer every byte correctly. Speed is not tested.
#include "bench/ps/peers/zeromq_peer.h"

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

const std::vector<std::string> kCommand = {SYNCOPATE_PS_PEER_PROGRAM, std::string(kPsPeerRank)};

// The peer exchanges 256 bytes, one full frame, three frames of which the last is partial, and a
// smaller size again.
TEST(ZeroMqPeer, TransfersEveryByteInBothDirections) {
  Peer peer({.command = kCommand});
  for (const char* bytes : {"256", "1048576", "2500004", "4"}) {
    const PeerAnswer answer = peer.ask("run " + std::string(bytes) + " 3", 3);
    ASSERT_EQ(answer.seconds.size(), 3U) << bytes;
    for (const double seconds : answer.seconds) EXPECT_GT(seconds, 0.0) << bytes;
  }
}

TEST(ZeroMqPeer, SplitsAnExchangeIntoMessagesOfAnySize) {
  Peer peer({.command = kCommand});
  EXPECT_EQ(peer.ask(exchange_command({.bytes = 5000, .message_bytes = 256}, 2), 2).seconds.size(),
            2U);
}

TEST(ZeroMqPeer, RefusesWhatItDoesNotUnderstand) {
  Peer peer({.command = kCommand});
  EXPECT_THROW((void)peer.ask("run 6 1", 1), PeerError);
}

// ZeroMQ has no option for TCP's congestion control, so a preloaded library sets it.
TEST(ZeroMqPeer, IsAbsentWithoutTheLibraryThatSetsTheCongestionControl) {
  EXPECT_THROW((void)zeromq_side("/nowhere/syncopate-bench"), UnavailableError);
}

TEST(ExchangeContest, ReportsEverySideAndHoldsOursAgainstTheBestPeer) {
  std::vector<Contestant> contestants;
  contestants.emplace_back(
      ContestSide{.name = "ours, tcp", .ours = true, .tcp = true, .command = kCommand});
  contestants.emplace_back(ContestSide{.name = "zmq", .tcp = true, .command = kCommand});
  contestants.emplace_back(ContestSide{.name = "shm", .command = kCommand});
  const Rounds rounds = take_exchange_rounds(contestants, {.bytes = 256}, 2, 0.001);
  const std::string table = exchange_table("256", {.bytes = 256}, contestants, rounds);
  EXPECT_NE(table.find(" x zmq"), std::string::npos) << table;
  const auto report = exchange_json({.bytes = 256}, contestants, rounds);
  ASSERT_EQ(report["sides"].size(), 3U);
  EXPECT_EQ(report["sides"][0]["best_peer"], "zmq");  // Shared memory is not compared with TCP.
  EXPECT_EQ(report["sides"][2]["seconds_per_round"].size(), 2U);
  EXPECT_LE(report["sides"][2]["seconds_p50"], report["sides"][2]["seconds_p99"]);
}

}  // namespace
}  // namespace syncopate::bench
