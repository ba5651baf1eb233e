#include "strategies/cluster/pending_connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline soon() { return Deadline::after(seconds(10)); }

// A listening socket with connections in its backlog, which it has not accepted.
class PendingConnectionsTest : public testing::Test {
 protected:
  Connection call() const { return connect_to(endpoint_, "the listener", soon()); }
  void call_silently(int count) {
    for (int i = 0; i < count; ++i) silent_.push_back(call());
  }
  PendingConnections take(milliseconds timeout) { return {std::move(listener_), 100, timeout}; }

  // Returns the first message that any of the connections sends.
  static std::string receive_one(PendingConnections& connections) {
    for (const Deadline deadline = soon(); !deadline.passed();) {
      std::vector<pollfd> sockets;
      connections.add_to(sockets);
      poll(sockets.data(), sockets.size(), connections.poll_milliseconds(deadline));
      for (const PendingConnections::Arrival& arrival : connections.receive())
        return arrival.frame.payload;
    }
    return "nothing was received";
  }

  Listener listener_{Endpoint{"127.0.0.1", 0}};
  Endpoint endpoint_{"127.0.0.1", listener_.port()};
  std::vector<Connection> silent_;
};

TEST_F(PendingConnectionsTest, AreReceivedBehindMoreSilentOnesThanThereIsRoomFor) {
  call_silently(600);
  Connection caller = call();
  caller.send({1, "here I am"}, soon());
  PendingConnections connections = take(milliseconds(50));
  EXPECT_EQ(receive_one(connections), "here I am");
}

TEST_F(PendingConnectionsTest, StayOpenWhileThereIsRoom) {
  PendingConnections connections = take(milliseconds(0));
  Connection slow = call();
  EXPECT_TRUE(connections.receive().empty());
  EXPECT_TRUE(connections.receive().empty());
  slow.send({1, "at last"}, soon());
  EXPECT_EQ(receive_one(connections), "at last");
}

TEST_F(PendingConnectionsTest, AreClosedForALongMessageOrAnotherProtocol) {
  Connection oversized = call();
  oversized.send({1, std::string(101, 'x')}, soon());
  const Connection browser = call();
  ASSERT_EQ(::write(browser.descriptor(), "GET / HTTP/1.1\r\n", 16), 16);
  Connection good = call();
  good.send({1, "good"}, soon());
  PendingConnections connections = take(seconds(5));
  EXPECT_EQ(receive_one(connections), "good");
  EXPECT_TRUE(connections.receive().empty());
}

// Lowers the limit on open files of this process during the object's lifetime.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(PendingConnectionsTest, AreReceivedAfterDescriptorsRanOutForAWhile) {
  if (kSanitized) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer takes a type for wrong when it cannot open a file";
  }
  call_silently(20);
  Connection caller = call();
  caller.send({1, "here I am"}, soon());
  // The process can open ten more files, and twenty silent connections are ahead of the one that
  // sends.
  const FileLimit limit(static_cast<rlim_t>(caller.descriptor()) + 11);
  PendingConnections connections = take(milliseconds(50));
  EXPECT_TRUE(connections.receive().empty());
  EXPECT_FALSE(FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(receive_one(connections), "here I am");
}

}  // namespace
}  // namespace syncopate
