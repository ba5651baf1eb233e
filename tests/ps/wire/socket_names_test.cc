// Names by which a ROUTER knows who calls: what becomes of a caller whose name another one takes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <string_view>

#include "ps/net/connection.h"
#include "ps/net/socket.h"
#include "tests/ps/wire/socket_case.h"

namespace syncopate::ps::wire {
namespace {

using namespace std::string_view_literals;

// A DEALER by hand, so that its connection is made early and its name is said late: the connection
// of a socket that was given up before the system let it get that far.
// Source: ZMTP 3.0 (rfc.zeromq.org/spec/23), NULL mechanism.
class LateCaller {
 public:
  explicit LateCaller(Socket& server)
      : connection_(connect_to({"127.0.0.1", server.port()}, "the server", soon())) {
    say("\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"sv);
    say(std::string(64 - 16, '\0'));
    hear(server, 64);
  }

  void introduce(const std::string& name) {
    std::string ready("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0"sv);
    ready += static_cast<char>(name.size());
    ready += name;
    say(std::string("\4") + static_cast<char>(ready.size()) + ready);
  }

  void send(const Envelope& message) {
    const auto header = message.frames.front().bytes();
    ASSERT_LT(header.size(), 256U);
    say(std::string("\0", 1) + static_cast<char>(header.size()) +
        std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  }

  // Something that is said to it, once all of its greeting is read.
  bool hears_of(Socket& server, std::string_view bytes) {
    const Deadline deadline = soon();
    while (heard_.find(bytes) == std::string::npos) {
      if (deadline.passed()) return false;
      hear(server, heard_.size() + 1);
    }
    return true;
  }

 private:
  static Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

  void say(std::string_view bytes) {
    ASSERT_EQ(::send(connection_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              std::ssize(bytes));
  }

  // Until it has heard so much in all.
  void hear(Socket& server, std::size_t bytes) {
    const Deadline deadline = soon();
    while (heard_.size() < bytes && !deadline.passed()) {
      server.flush();
      char byte = 0;
      if (recv(connection_.descriptor(), &byte, 1, MSG_DONTWAIT) == 1) {
        heard_ += byte;
      } else {
        wait_ready(connection_.descriptor(), POLLIN, Deadline::after(std::chrono::milliseconds(5)));
      }
    }
  }

  Connection connection_;
  std::string heard_;
};

std::string header_of(const Envelope& message) {
  const auto header = message.frames.front().bytes();
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

// Why every socket of ours has a name of its own (PROTOCOL.md): the ROUTER gives the name to who
// came last, and the one that had it is neither heard any more nor told.
TEST(TwoCallersUnderOneName, LeaveTheFirstOneConnectedToNobody) {
  Line line;
  LateCaller given_up(*line.server);
  const auto worker = line.call("w0.1");
  EXPECT_TRUE(worker->send(numbered("", 1)));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 1);
  given_up.introduce("w0.1");
  given_up.send(numbered("", 2));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 2);
  const Envelope answer = numbered("w0.1", 3);
  EXPECT_TRUE(line.server->send(numbered("w0.1", 3)));
  EXPECT_TRUE(given_up.hears_of(*line.server, header_of(answer)));
  EXPECT_FALSE(worker->receive());
  // It does not hear that its connection is worth nothing, and what it says is lost.
  EXPECT_TRUE(worker->send(numbered("", 4)));
  EXPECT_EQ(worker->link_event(), std::nullopt);
  given_up.send(numbered("", 5));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 5);
}

TEST(TwoCallersUnderNamesOfTheirOwn, AreBothHeardInWhateverOrderTheyCome) {
  Line line;
  LateCaller given_up(*line.server);
  const auto worker = line.call("w0.1.2");
  given_up.introduce("w0.1.1");
  given_up.send(numbered("", 2));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 2);
  EXPECT_TRUE(worker->send(numbered("", 7)));
  EXPECT_EQ(number_of(await_message(*line.server, {worker.get()})), 7);
  EXPECT_TRUE(line.server->send(numbered("w0.1.2", 8)));
  EXPECT_EQ(number_of(await_message(*worker, {line.server.get()})), 8);
}

}  // namespace
}  // namespace syncopate::ps::wire
