// Tests the control client of a server other than 0; the test plays server 0.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "models/base/errors.h"
#include "ps/server/server.h"
#include "ps/wire/message.h"
#include "tests/ps/wire/socket_case.h"
#include "tests/support/contains.h"

namespace syncopate::ps::testing {
namespace {

using std::chrono::seconds;

wire::Body kind_of(const wire::Envelope& message) {
  if (message.frames.empty()) return wire::Body::NONE;
  const auto header = wire::decode(wire::bytes_in(message.frames.front()));
  return header ? header->body.type : wire::Body::NONE;
}

ServerOptions server_1_of(const wire::Socket& server0) {
  return {.index = 1,
          .workers = 1,
          .servers = 2,
          .rendezvous = {"127.0.0.1", server0.port()},
          .listening = {},
          .snapshot_dir = {},
          .record = {},
          .peer_timeout = seconds(1),
          .worker_timeout = seconds(120),
          .servers_return = true,
          .late_workers = {}};
}

// The control thread builds shards and snapshots, which takes seconds for a large network.
TEST(ServerControlClient, SendsHeartbeatsWhileItsControlThreadIsBusy) {
  wire::Context context;
  auto server0 = wire::Socket::listen(context, {"127.0.0.1", 0}, {.nonce = ""});
  std::promise<void> done;
  std::shared_future<void> is_done = done.get_future().share();
  std::atomic<bool> is_busy = false;
  auto ends = std::async(std::launch::async, [&] {
    // The control thread calls `stop`.
    const auto stop = [&] {
      if (is_busy) is_done.wait();
      return is_busy.load();
    };
    EXPECT_THROW(run_server(server_1_of(*server0), stop, [](const std::string&) {}), PeerError);
  });
  const wire::Envelope hello = wire::await_message(*server0, {});
  server0->send(wire::envelope(hello.peer, wire::make_message(wire::WelcomeT())));
  ASSERT_EQ(kind_of(wire::await_message(*server0, {})), wire::Body::Heartbeat);
  is_busy = true;
  // Half of these would arrive before the control thread is busy; the rest takes a second.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(kind_of(wire::await_message(*server0, {})), wire::Body::Heartbeat) << i;
  }
  server0.reset();
  done.set_value();
  ASSERT_EQ(ends.wait_for(seconds(60)), std::future_status::ready);
}

// Server 0 was killed after the last worker had ended, so launch does not restart it.
TEST(ServerControlClient, EndsSoonAfterAStopRequestIfServer0IsGone) {
  wire::Context context;
  auto server0 = wire::Socket::listen(context, {"127.0.0.1", 0}, {.nonce = ""});
  ServerOptions options = server_1_of(*server0);
  std::atomic<bool> stop = false;
  auto ends = std::async(std::launch::async, [&]() -> std::string {
    try {
      run_server(
          std::move(options), [&] { return stop.load(); }, [](const std::string&) {});
      return "no failure";
    } catch (const PeerError& error) {
      return error.what();
    }
  });
  const wire::Envelope hello = wire::await_message(*server0, {});
  ASSERT_EQ(kind_of(hello), wire::Body::Hello);
  server0->send(wire::envelope(hello.peer, wire::make_message(wire::WelcomeT())));
  // A server sends heartbeats only after server 0 has accepted it.
  ASSERT_EQ(kind_of(wire::await_message(*server0, {})), wire::Body::Heartbeat);
  server0.reset();
  stop = true;
  ASSERT_EQ(ends.wait_for(seconds(60)), std::future_status::ready);
  const std::string reason = ends.get();
  EXPECT_TRUE(contains(reason,
                       "was disconnected when this server was requested to stop, and did not "
                       "reconnect within 2 s"));
}

}  // namespace
}  // namespace syncopate::ps::testing
