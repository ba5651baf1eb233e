// Tests that the listening socket of the rendezvous outlives the incarnations of server 0.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "deploy/launch/role_commands.h"
#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "tests/deploy/launch/launch_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

// Connects to the endpoint. Returns an empty descriptor if the connection is refused.
FileDescriptor call(const std::string& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(parse_endpoint(endpoint, "rendezvous").port);
  FileDescriptor caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    caller.reset();
  }
  return caller;
}

std::string read_all(const FileDescriptor& caller) {
  std::array<char, 64> bytes{};
  std::string text;
  for (ssize_t count = 0; (count = read(caller.get(), bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

class RendezvousOfServers : public testing::Test {
 protected:
  // Runs a job of one server and one worker, whose rendezvous is at `endpoint_`.
  Launched run(const std::string& server, const std::string& worker) {
    return job_.run_plan([&](int) {
      auto roles = make_local_roles({.arguments = {"/bin/sh", "-c", ""},
                                     .workers = 1,
                                     .servers = 1,
                                     .environment = job_.environment()});
      for (RoleCommand& role : roles) {
        role.arguments.back() = role.role == Role::kServer ? server : worker;
      }
      endpoint_ = roles.front().environment.at("SYNCOPATE_RENDEZVOUS");
      return roles;
    });
  }

  LaunchCase job_;
  std::string endpoint_;
};

TEST_F(RendezvousOfServers, KeepsAConnectionForTheNextIncarnationOfServerZero) {
  job_.rules.servers.restarts_alone = true;
  job_.rules.most_restarts = 1;
  job_.rules.timeout = std::chrono::seconds(60);
  FileDescriptor caller;
  job_.on_err = [&](const std::string& line) {
    // When launch prints that signal 9 ended server 0, launch has not started server 0 again yet.
    if (contains(line, "server 0 was ended by signal 9")) caller = call(endpoint_);
  };
  const std::string server =
      "mkdir $FOLDER/first 2>/dev/null && kill -KILL $$; " SYNCOPATE_ANSWERING_PROGRAM
      " second; : >$FOLDER/pipe";
  const Launched result = run(server, ": <$FOLDER/pipe");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ASSERT_TRUE(caller) << result.err;
  EXPECT_EQ(read_all(caller), "second");
}

TEST_F(RendezvousOfServers, RefusesConnectionsOnceServerZeroWillNotBeRestarted) {
  FileDescriptor caller;
  int error = 0;
  job_.on_err = [&](const std::string& line) {
    if (!contains(line, "server 0 exited with 1")) return;
    caller = call(endpoint_);
    error = errno;
  };
  run("exit 1", ":");
  EXPECT_FALSE(caller);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST_F(RendezvousOfServers, RefusesConnectionsOnceServerZeroHasNoRestartLeft) {
  job_.rules.servers.restarts_alone = true;
  job_.rules.most_restarts = 1;
  FileDescriptor caller;
  job_.on_err = [&](const std::string& line) {
    if (contains(line, "server 0 exited with 1 and has no restart left")) caller = call(endpoint_);
  };
  const Launched result = run("exit 1", wait_for_a_signal());
  EXPECT_FALSE(caller) << result.err;
  EXPECT_TRUE(contains(result.err, "has no restart left"));
}

}  // namespace
}  // namespace syncopate::test
