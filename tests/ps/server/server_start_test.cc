// Tests the log lines and the errors at the start of a server or a worker.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "ps/client/client.h"
#include "ps/net/connection.h"
#include "ps/server/server.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

ServerOptions options_of(int index, const Endpoint& rendezvous, milliseconds timeout) {
  return {.index = index,
          .workers = 2,
          .servers = 2,
          .rendezvous = rendezvous,
          .listening = {},
          .snapshot_dir = {},
          .record = {},
          .rendezvous_timeout = timeout,
          .announces = true};
}

// Returns the lines that a server reports if it is asked to stop at once.
std::vector<std::string> notes_of(ServerOptions options) {
  std::vector<std::string> notes;
  EXPECT_THROW(run_server(
                   std::move(options), [] { return true; },
                   [&](const std::string& line) { notes.push_back(line); }),
               PeerError);
  return notes;
}

void expect_unknown_host(const std::function<void()>& call) {
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { call(); }), "the host name 'no..host' is unknown"));
}

TEST(AServerThatStarts, NotesItsEndpointAndTheTasksItWaitsFor) {
  Listener listener(Endpoint{"127.0.0.1", 0});
  const Endpoint here{"127.0.0.1", listener.port()};
  ServerOptions options = options_of(0, here, std::chrono::seconds(120));
  options.listening = listener.release();
  const std::vector<std::string> notes = notes_of(std::move(options));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0], "listening at " + to_string(here) +
                          " (this host only), waits up to 120 s for 2 workers and 1 more server");
}

TEST(AServerThatStarts, NotesTheEndpointOfServer0) {
  const std::vector<std::string> notes =
      notes_of(options_of(1, {"127.0.0.1", 4000}, std::chrono::seconds(60)));
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes[0], "waits up to 60 s for server 0 at 127.0.0.1:4000");
}

TEST(AServerThatStarts, NamesAnUnknownHost) {
  expect_unknown_host([] {
    run_server(
        options_of(1, {"no..host", 4000}, milliseconds(50)), [] { return false; },
        [](const std::string&) {});
  });
}

TEST(AWorkerThatStarts, NamesAnUnknownHost) {
  expect_unknown_host([] {
    const ClientOptions options{.rendezvous = {"no..host", 4000},
                                .rendezvous_timeout = milliseconds(50)};
    const Client client(options);
  });
}

}  // namespace
}  // namespace syncopate::ps
