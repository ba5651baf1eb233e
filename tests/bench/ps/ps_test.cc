// Runs syncopate's side of `syncopate-bench ps`, which checks every value itself. Speed is not
// tested.
#include "bench/ps/ps.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "bench/harness/bench_commands.h"
#include "bench/harness/peer.h"
#include "bench/ps/peers/exchange.h"
#include "bench/ps/peers/zeromq_peer.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

PeerOptions first_side(const PsOptions& options) {
  return {.command = own_ps_sides(options, SYNCOPATE_BENCH).at(0).command};
}

class PsSide : public testing::TestWithParam<
                   std::tuple<const char*, const char*, const char*, const char*>> {
 protected:
  PsOptions options() const {
    const auto& [transport, optimizer, compression, consistency] = GetParam();
    return {.workers = 2,
            .servers = 2,
            .transports = {transport},
            .optimizers = {optimizer},
            .compressions = {compression},
            .consistency = consistency};
  }
};

// This test exchanges 300,000 bytes twice, then 4 KiB in variables of 256 bytes, each variable in a
// message of its own.
TEST_P(PsSide, ExchangesTheValuesOfEverySizeAndTimesEachWorker) {
  Peer side(first_side(options()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(side.ask(exchange_command({.bytes = 300'000}, 5), 10).seconds.size(), 10U);
  }
  const ExchangeShape small{.bytes = 4096, .message_bytes = 256, .variable_bytes = 256};
  for (const double seconds : side.ask(exchange_command(small, 3), 6).seconds) {
    EXPECT_GT(seconds, 0.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PsSide,
                         testing::Combine(testing::Values("shm", "tcp"),
                                          testing::Values("sgd", "adam"),
                                          testing::Values("none", "bf16"),
                                          testing::Values("async", "sync")),
                         [](const testing::TestParamInfo<PsSide::ParamType>& of) {
                           return std::string(std::get<0>(of.param)) + "_" + std::get<1>(of.param) +
                                  "_" + std::get<2>(of.param) + "_" + std::get<3>(of.param);
                         });

TEST(PsSides, ReportTheMemoryOfEachIdleServer) {
  Peer side(first_side({.servers = 2, .transports = {"tcp"}}));
  EXPECT_EQ(side.ask("idle 1", 2).seconds.size(), 2U);
}

TEST(PsSides, RefuseWhatTheyDoNotUnderstand) {
  Peer side(first_side({}));
  EXPECT_THROW((void)side.ask("run 6 1", 1), PeerError);
}

TEST(PsFlags, WithUnknownNamesAreAUsageError) {
  for (const char* flag : {"--transport", "--optimizers", "--compress", "--consistency"}) {
    FlagSet flags("syncopate-bench ps", "");
    const Command command = declare_ps(flags, Environment());
    EXPECT_THROW((void)flags.parse(std::vector<std::string>{flag, "lamb"}), UsageError) << flag;
  }
}

TEST(PsSides, AreOneOfEachTransportOptimizerAndCompression) {
  const auto sides = own_ps_sides(
      {.workers = 4, .optimizers = {"sgd", "adam"}, .compressions = {"none", "bf16"}}, "program");
  ASSERT_EQ(sides.size(), 8U);
  EXPECT_EQ(sides[0].name, "ours, shm, sgd");
  EXPECT_EQ(sides[7].name, "ours, tcp, adam, bf16");
  EXPECT_EQ(sides[7].workers, 4);
  EXPECT_TRUE(sides[7].tcp);
}

TEST(ZeroMqPeer, IsReadyWithTheProgram) { EXPECT_NO_THROW((void)zeromq_side(SYNCOPATE_BENCH)); }

}  // namespace
}  // namespace syncopate::bench
