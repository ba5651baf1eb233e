#include "strategies/cluster/callers.h"

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

// A socket with callers in its queue, none of them taken yet.
class CallersInAQueue : public testing::Test {
 protected:
  Connection call() const { return connect_to(endpoint_, "the listener", soon()); }
  void call_silently(int count) {
    for (int i = 0; i < count; ++i) silent_.push_back(call());
  }
  Callers take(milliseconds patience) { return {std::move(listener_), 100, patience}; }

  // What the first one says that says anything.
  static std::string hear_one(Callers& callers) {
    for (const Deadline deadline = soon(); !deadline.passed();) {
      std::vector<pollfd> sockets;
      callers.add_to(sockets);
      poll(sockets.data(), sockets.size(), callers.poll_milliseconds(deadline));
      for (const Callers::Heard& heard : callers.hear()) return heard.frame.payload;
    }
    return "nobody was heard";
  }

  Listener listener_{Endpoint{"127.0.0.1", 0}};
  Endpoint endpoint_{"127.0.0.1", listener_.port()};
  std::vector<Connection> silent_;
};

TEST_F(CallersInAQueue, AreHeardBehindMoreSilentOnesThanThereIsRoomFor) {
  call_silently(600);
  Connection caller = call();
  caller.send({1, "here I am"}, soon());
  Callers callers = take(milliseconds(50));
  EXPECT_EQ(hear_one(callers), "here I am");
}

TEST_F(CallersInAQueue, KeepTheirPlaceWhileNobodyNeedsIt) {
  Callers callers = take(milliseconds(0));
  Connection slow = call();
  EXPECT_TRUE(callers.hear().empty());
  EXPECT_TRUE(callers.hear().empty());
  slow.send({1, "at last"}, soon());
  EXPECT_EQ(hear_one(callers), "at last");
}

TEST_F(CallersInAQueue, AreTurnedAwayWhenTheySayTooMuchOrSomethingElse) {
  Connection talkative = call();
  talkative.send({1, std::string(101, 'x')}, soon());
  const Connection browser = call();
  ASSERT_EQ(::write(browser.descriptor(), "GET / HTTP/1.1\r\n", 16), 16);
  Connection good = call();
  good.send({1, "good"}, soon());
  Callers callers = take(seconds(5));
  EXPECT_EQ(hear_one(callers), "good");
  EXPECT_TRUE(callers.hear().empty());
}

// The limit on open files of this process, for as long as it lives.
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

TEST_F(CallersInAQueue, AreHeardWhenDescriptorsRunOutForAWhile) {
  if (kSanitized) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer takes a type for wrong when it cannot open a file";
  }
  call_silently(20);
  Connection caller = call();
  caller.send({1, "here I am"}, soon());
  // Ten more files may be opened, and twenty silent callers are before the one that speaks.
  const FileLimit limit(static_cast<rlim_t>(caller.descriptor()) + 11);
  Callers callers = take(milliseconds(50));
  EXPECT_TRUE(callers.hear().empty());
  EXPECT_FALSE(FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  EXPECT_EQ(hear_one(callers), "here I am");
}

}  // namespace
}  // namespace syncopate
