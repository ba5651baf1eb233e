// Tests at which addresses parameter servers listen, as the kernel reports them.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/end_to_end/support/listening_sockets.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/outer_address.h"

namespace syncopate::test {
namespace {

std::string kernel_notation(const std::string& address) {
  in_addr bytes{};
  inet_pton(AF_INET, address.c_str(), &bytes);
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08X", bytes.s_addr);
  return text.data();
}

// Returns the sockets at which server 0 of a job listens, where `rendezvous` is the address at
// which the tasks meet.
std::vector<ListeningSocket> sockets_of_a_server(const std::string& rendezvous) {
  RunningProgram server(syncopate_command(
      as_words("serve --index 0 --servers 1 --workers 1 --rendezvous", rendezvous)));
  EXPECT_TRUE(server.wait_until_err_has("listening at"));
  return listening_sockets(server.pid());
}

TEST(AServerAtALoopbackRendezvous, ListensAtLoopbackOnly) {
  const std::string port = Port(false).endpoint().substr(std::string("127.0.0.1").size());
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const std::vector<ListeningSocket> sockets = sockets_of_a_server(host + port);
    EXPECT_EQ(sockets.size(), 2U) << "for control and for data, at " << host;
    for (const ListeningSocket& socket : sockets) EXPECT_EQ(socket.address, "0100007F") << host;
  }
}

// Tasks of a job on several hosts call an address of the network that they share.
TEST(AServerAtAnOuterAddress, ListensAtThatAddressOnly) {
  const std::string address = outer_address();
  if (address.empty()) GTEST_SKIP() << "this machine has no address beside loopback";
  const std::string port = Port(false).endpoint().substr(std::string("127.0.0.1").size());
  const std::vector<ListeningSocket> sockets = sockets_of_a_server(address + port);
  EXPECT_GE(sockets.size(), 1U);
  for (const ListeningSocket& socket : sockets) {
    EXPECT_EQ(socket.address, kernel_notation(address)) << "for control, and for data";
  }
}

TEST(AServerAtEveryAddress, ListensAtEveryInterface) {
  const std::string port = Port(false).endpoint().substr(std::string("127.0.0.1").size());
  const std::vector<ListeningSocket> sockets = sockets_of_a_server("0.0.0.0" + port);
  EXPECT_EQ(sockets.size(), 2U);
  EXPECT_TRUE(std::ranges::all_of(sockets, is_every_interface));
}

class ServersUnderLaunch : public testing::TestWithParam<Arguments> {};

TEST_P(ServersUnderLaunch, ListenAtLoopbackOnly) {
  const TrainingRuns runs;
  const auto metrics = runs / "m.jsonl";
  const Arguments what = as_words(
      "--model mlp --data synthetic:1x8x8:4:800 --threads 1 --epochs 1000000 --log-every 1 "
      "--metrics",
      metrics);
  RunningProgram job(
      syncopate_command(parameter_servers({.workers = 1, .servers = 2}, what) + GetParam()));
  ASSERT_TRUE(job.wait_until_file_has(metrics, "\"event\":\"step\""));
  for (const int index : {0, 1}) {
    const auto server = process_of(job.pid(), {"server", index});
    ASSERT_TRUE(server);
    const std::vector<ListeningSocket> sockets = listening_sockets(*server);
    EXPECT_FALSE(sockets.empty());
    for (const ListeningSocket& socket : sockets) {
      EXPECT_FALSE(is_every_interface(socket)) << "server " << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ServersUnderLaunch,
                         testing::Values(Arguments{"--transport", "auto"},
                                         Arguments{"--transport", "tcp", "--link-delay", "1ms"}),
                         [](const auto& parameters) { return parameters.param[1]; });

}  // namespace
}  // namespace syncopate::test
