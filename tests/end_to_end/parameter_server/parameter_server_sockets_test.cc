// Tests at which addresses parameter servers listen, as the kernel reports them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/role_processes.h"
#include "tests/end_to_end/support/training_runs.h"

namespace syncopate::test {
namespace {

std::set<std::string> socket_inodes(pid_t process) {
  std::set<std::string> inodes;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// Returns listening addresses in the notation of /proc/net/tcp: "0100007F" is 127.0.0.1, and zeros
// stand for every interface.
std::vector<std::string> addresses_listened_at(pid_t process) {
  const std::set<std::string> inodes = socket_inodes(process);
  std::vector<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream text(line);
      std::vector<std::string> words;
      for (std::string word; text >> word;) words.push_back(word);
      const bool is_listening = words.size() > 9 && words[3] == "0A";
      if (!is_listening || !inodes.contains(words[9])) continue;
      addresses.push_back(words[1].substr(0, words[1].find(':')));
    }
  }
  return addresses;
}

bool is_every_interface(const std::string& address) {
  return std::ranges::all_of(address, [](char digit) { return digit == '0'; });
}

// Returns the addresses at which server 0 of a job listens, where `rendezvous` is the address at
// which the tasks meet.
std::vector<std::string> addresses_of_a_server(const std::string& rendezvous) {
  RunningProgram server(syncopate_command(
      {"serve", "--index", "0", "--servers", "1", "--workers", "1", "--rendezvous", rendezvous}));
  EXPECT_TRUE(server.wait_until_err_has("listening at"));
  return addresses_listened_at(server.pid());
}

TEST(AServerAtALoopbackRendezvous, ListensAtLoopbackOnly) {
  const std::string port = Port(false).endpoint().substr(std::string("127.0.0.1").size());
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const std::vector<std::string> addresses = addresses_of_a_server(host + port);
    EXPECT_EQ(addresses, (std::vector<std::string>{"0100007F", "0100007F"}))
        << "for control and for data, at " << host;
  }
}

TEST(AServerAtANamedRendezvous, ListensAtEveryInterface) {
  const std::string port = Port(false).endpoint().substr(std::string("127.0.0.1").size());
  const std::vector<std::string> addresses = addresses_of_a_server("0.0.0.0" + port);
  EXPECT_EQ(addresses.size(), 2U);
  EXPECT_TRUE(std::ranges::all_of(addresses, is_every_interface));
}

class ServersUnderLaunch : public testing::TestWithParam<Arguments> {};

TEST_P(ServersUnderLaunch, ListenAtLoopbackOnly) {
  const TrainingRuns runs;
  const auto metrics = runs / "m.jsonl";
  const Arguments what{"--model",     "mlp", "--data",    "synthetic:1x8x8:4:800",
                       "--threads",   "1",   "--epochs",  "1000000",
                       "--log-every", "1",   "--metrics", metrics};
  RunningProgram job(
      syncopate_command(parameter_servers({.workers = 1, .servers = 2}, what) + GetParam()));
  ASSERT_TRUE(job.wait_until_file_has(metrics, "\"event\":\"step\""));
  for (const int index : {0, 1}) {
    const auto server = process_of(job.pid(), {"server", index});
    ASSERT_TRUE(server);
    const std::vector<std::string> addresses = addresses_listened_at(*server);
    EXPECT_FALSE(addresses.empty());
    for (const std::string& address : addresses) {
      EXPECT_FALSE(is_every_interface(address)) << "server " << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ServersUnderLaunch,
                         testing::Values(Arguments{"--transport", "auto"},
                                         Arguments{"--transport", "tcp", "--link-delay", "1ms"}),
                         [](const auto& parameters) { return parameters.param[1]; });

}  // namespace
}  // namespace syncopate::test
