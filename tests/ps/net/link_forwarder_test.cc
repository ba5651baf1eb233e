// Tests a simulated slow link: its delay, its rate, and that it changes nothing else.
#include "ps/net/link_forwarder.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

Deadline twenty_seconds() { return Deadline::after(seconds(20)); }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string pattern(std::size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    seed = seed * 1664525U + 1013904223U;
    text[i] = static_cast<char>(seed >> 24);
  }
  return text;
}

void send_all(const FileDescriptor& socket, std::string_view bytes) {
  const Deadline deadline = twenty_seconds();
  while (!bytes.empty()) {
    const ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN || !wait_ready(socket.get(), POLLOUT, deadline)) {
      FAIL() << bytes.size() << " bytes could not be sent";
    }
  }
}

struct Received {
  std::string bytes;
  bool has_ended = false;
  int error_number = 0;
};

// Reads a socket until this many bytes have arrived, or the stream ends.
Received receive(const FileDescriptor& socket, std::size_t most) {
  const Deadline deadline = twenty_seconds();
  Received received;
  std::vector<char> buffer(1 << 16);
  while (received.bytes.size() < most) {
    const std::size_t wanted = std::min(buffer.size(), most - received.bytes.size());
    const ssize_t count = recv(socket.get(), buffer.data(), wanted, 0);
    if (count > 0) {
      received.bytes.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      received.has_ended = true;
      return received;
    } else if (errno != EAGAIN || !wait_ready(socket.get(), POLLIN, deadline)) {
      received.error_number = errno;
      return received;
    }
  }
  return received;
}

constexpr std::size_t kToTheEnd = ~std::size_t{0};

struct Pair {
  FileDescriptor caller;
  FileDescriptor callee;
};

class Slowed {
 public:
  explicit Slowed(const Link& link)
      : target_(Endpoint{"127.0.0.1", 0}),
        forwarder_(std::in_place, Listener(Endpoint{"127.0.0.1", 0}), target_.port(), link),
        endpoint_{"127.0.0.1", forwarder_->port()} {}

  Pair call() {
    Connection caller = connect_to(endpoint_, "the forwarder", twenty_seconds());
    auto callee = target_.accept(twenty_seconds());
    EXPECT_TRUE(callee);
    return {caller.release(), callee ? callee->release() : FileDescriptor()};
  }
  void end() { forwarder_.reset(); }

 private:
  Listener target_;
  std::optional<LinkForwarder> forwarder_;
  Endpoint endpoint_;
};

void reset(FileDescriptor socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

TEST(LinkForwarder, ForwardsAllBytesInOrderInBothDirections) {
  Slowed slowed({.delay_seconds = 0.001, .bytes_per_second = 50e6});
  const Pair pair = slowed.call();
  const std::string there = pattern(3'000'001, 1);
  const std::string back = pattern(2'000'003, 2);
  const std::jthread sends([&] { send_all(pair.caller, there); });
  const std::jthread answers([&] { send_all(pair.callee, back); });
  std::string received;
  std::jthread receives([&] { received = receive(pair.caller, back.size()).bytes; });
  EXPECT_TRUE(receive(pair.callee, there.size()).bytes == there);
  receives.join();
  EXPECT_TRUE(received == back);
}

// The link computes when bytes arrive from the time that is passed to it. The tests of the
// forwarder below check against a clock only that bytes arrive no earlier.
TEST(SlowLink, DelaysBytesByItsRateAndItsDelay) {
  SlowLink link({.delay_seconds = 0.005, .bytes_per_second = 20e6});
  const SlowLink::Time begin;
  EXPECT_EQ(link.send(begin, 8'000'000), begin + milliseconds(405));
  EXPECT_EQ(link.send(begin, 2'000'000), begin + milliseconds(505)) << "behind the first bytes";
  EXPECT_EQ(link.send(begin + seconds(2), 2'000'000), begin + milliseconds(2105))
      << "after a pause";
}

TEST(LinkForwarder, DelaysARoundTripTwice) {
  Slowed slowed({.delay_seconds = 0.02});
  const Pair pair = slowed.call();
  double shortest = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    send_all(pair.caller, "ping");
    ASSERT_EQ(receive(pair.callee, 4).bytes, "ping");
    send_all(pair.callee, "pong");
    ASSERT_EQ(receive(pair.caller, 4).bytes, "pong");
    shortest = std::min(shortest, seconds_since(begin));
  }
  EXPECT_GE(shortest, 0.04);
  EXPECT_LE(shortest, 0.4) << "ten times the delay of the link";
}

// Returns the seconds that `bytes` take through each of several connections that send at the same
// time.
double time_of(const std::vector<Pair>& pairs, std::size_t bytes) {
  const std::string text = pattern(bytes, 3);
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (const Pair& pair : pairs) {
      threads.emplace_back([&] { send_all(pair.caller, text); });
      threads.emplace_back([&] { EXPECT_TRUE(receive(pair.callee, bytes).bytes == text); });
    }
  }
  return seconds_since(begin);
}

TEST(LinkForwarder, LimitsTheRate) {
  Slowed slowed({.delay_seconds = 0.005, .bytes_per_second = 20e6});
  std::vector<Pair> pairs;
  pairs.push_back(slowed.call());
  double shortest = 1e9;
  for (int i = 0; i < 3; ++i) shortest = std::min(shortest, time_of(pairs, 8'000'000));
  EXPECT_GE(shortest, 0.40 + 0.005);
  EXPECT_LE(shortest, 4.05) << "ten times the time of the link";
}

TEST(LinkForwarder, SharesItsRateBetweenConnections) {
  Slowed slowed({.bytes_per_second = 20e6});
  std::vector<Pair> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(slowed.call());
  double shortest = 1e9;
  for (int i = 0; i < 3; ++i) shortest = std::min(shortest, time_of(pairs, 1'500'000));
  EXPECT_GE(shortest, 0.30);
  EXPECT_LE(shortest, 3.0) << "ten times the time of the link";
}

TEST(LinkForwarder, StopsReadingWhenTheReceiverDoesAndLosesNothing) {
  constexpr std::size_t kMegabyte = 1 << 20;
  Slowed slowed({.delay_seconds = 0.001});
  const Pair pair = slowed.call();
  const std::string text = pattern(kMegabyte, 4);
  std::size_t sent = 0;
  while (sent < 400 * kMegabyte) {
    const std::size_t at = sent % kMegabyte;
    const ssize_t count = send(pair.caller.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (!wait_ready(pair.caller.get(), POLLOUT, Deadline::after(milliseconds(500)))) {
      break;
    }
  }
  EXPECT_LT(sent, 100 * kMegabyte)
      << "expected at most its own 32 MiB and the buffers of four sockets";
  const Received received = receive(pair.callee, sent);
  EXPECT_EQ(received.bytes.size(), sent);
  for (std::size_t at = 0; at + kMegabyte <= received.bytes.size(); at += kMegabyte) {
    ASSERT_TRUE(std::string_view(received.bytes).substr(at, kMegabyte) == text) << at;
  }
}

TEST(LinkForwarder, PassesOnTheEndOfOneDirection) {
  Slowed slowed({.delay_seconds = 0.01});
  Pair pair = slowed.call();
  send_all(pair.caller, "question");
  shutdown(pair.caller.get(), SHUT_WR);
  const Received question = receive(pair.callee, kToTheEnd);
  EXPECT_EQ(question.bytes, "question");
  EXPECT_TRUE(question.has_ended);
  send_all(pair.callee, "answer");
  pair.callee.reset();
  const Received answer = receive(pair.caller, kToTheEnd);
  EXPECT_EQ(answer.bytes, "answer");
  EXPECT_TRUE(answer.has_ended);
}

TEST(LinkForwarder, PassesOnAResetInBothDirections) {
  Slowed slowed({.delay_seconds = 0.01});
  Pair pair = slowed.call();
  reset(std::move(pair.caller));
  EXPECT_EQ(receive(pair.callee, kToTheEnd).error_number, ECONNRESET);
  pair = slowed.call();
  reset(std::move(pair.callee));
  EXPECT_EQ(receive(pair.caller, kToTheEnd).error_number, ECONNRESET);
}

TEST(LinkForwarder, ResetsTheSenderWhenItsReceiverIsGone) {
  Slowed slowed({.delay_seconds = 0.001});
  Pair pair = slowed.call();
  pair.callee.reset();
  const Deadline deadline = twenty_seconds();
  ssize_t count = 0;
  while (count >= 0 && !deadline.passed()) {
    count = send(pair.caller.get(), "x", 1, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) count = 0;
  }
  EXPECT_LT(count, 0) << "it still sends to a receiver that is gone";
}

TEST(LinkForwarder, ResetsCallersWhenNoSocketListens) {
  std::uint16_t nobodys_port = 0;
  {
    const Listener gone(Endpoint{"127.0.0.1", 0});
    nobodys_port = gone.port();
  }
  const LinkForwarder forwarder(Listener(Endpoint{"127.0.0.1", 0}), nobodys_port,
                                {.delay_seconds = 0.001});
  Connection caller =
      connect_to({"127.0.0.1", forwarder.port()}, "the forwarder", twenty_seconds());
  const Received received = receive(caller.release(), kToTheEnd);
  EXPECT_TRUE(received.has_ended || received.error_number == ECONNRESET) << received.error_number;
}

TEST(LinkForwarder, EndsAtOnceWithUndeliveredBytes) {
  Slowed slowed({.delay_seconds = 60.0});
  const Pair pair = slowed.call();
  send_all(pair.caller, "late");
  const auto begin = Clock::now();
  slowed.end();
  EXPECT_LT(seconds_since(begin), 30.0) << "it waited for the delay of 60 s";
  const Received received = receive(pair.callee, kToTheEnd);
  EXPECT_EQ(received.bytes, "");
  EXPECT_TRUE(received.has_ended || received.error_number == ECONNRESET);
}

}  // namespace
}  // namespace syncopate
