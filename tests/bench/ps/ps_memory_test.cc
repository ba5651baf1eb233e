// Measures the memory of a server while eight workers push as fast as they can. Credit bounds the
// data in flight, so the memory is the model, its slots and a fixed allowance for any number of
// workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/harness/peer.h"
#include "bench/ps/peers/exchange.h"
#include "bench/ps/ps.h"

namespace syncopate::bench {
namespace {

constexpr int kWorkers = 8;
constexpr std::int64_t kModelBytes = std::int64_t{100} << 20;
constexpr std::int64_t kAllowance = std::int64_t{64} << 20;
constexpr int kSlotsOfAdam = 2;

// Returns the bytes of the server process's own pages. Pages of the workers' segments, which the
// server maps, are not counted.
std::int64_t own_bytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

class ServerMemory : public testing::TestWithParam<const char*> {};

TEST_P(ServerMemory, IsTheModelsWhileEightWorkersPushAsFastAsTheyCan) {
  const PsOptions options{.workers = kWorkers, .transports = {GetParam()}, .optimizers = {"adam"}};
  Peer side({.command = own_ps_sides(options, SYNCOPATE_BENCH).at(0).command});
  const pid_t server = nlohmann::json::parse(side.settings())["pids"].back().get<pid_t>();
  constexpr int kExchanges = 10;
  const ExchangeShape shape{.bytes = static_cast<std::size_t>(kModelBytes)};
  auto running = std::async(std::launch::async, [&] {
    return side.ask(exchange_command(shape, kExchanges), kExchanges * kWorkers).seconds.size();
  });
  std::int64_t most = 0;
  while (running.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    most = std::max(most, own_bytes(server));
  }
  EXPECT_EQ(running.get(), static_cast<std::size_t>(kExchanges * kWorkers));
  EXPECT_GT(most, kModelBytes * (1 + kSlotsOfAdam));
  EXPECT_LE(most, kModelBytes * (1 + kSlotsOfAdam) * 11 / 10 + kAllowance);
}

INSTANTIATE_TEST_SUITE_P(Transports, ServerMemory, testing::Values("shm", "tcp"),
                         [](const testing::TestParamInfo<const char*>& of) { return of.param; });

}  // namespace
}  // namespace syncopate::bench
