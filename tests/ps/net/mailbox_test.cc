#include "ps/net/mailbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

bool is_readable(const auto& mailbox, int timeout_ms) {
  pollfd event{mailbox.descriptor(), POLLIN, 0};
  return poll(&event, 1, timeout_ms) > 0;
}

TEST(Mailbox, ReturnsEachValueOnceInTheOrderOfItsSender) {
  constexpr int kValues = 20000;
  Mailbox<std::pair<std::size_t, int>> mailbox;
  const auto send = [&](std::size_t sender) {
    for (int i = 0; i < kValues; ++i) mailbox.post({sender, i});
  };
  std::array<int, 2> next{};
  {
    const std::array senders{std::jthread(send, 0), std::jthread(send, 1)};
    while (next[0] + next[1] < 2 * kValues && is_readable(mailbox, 10'000)) {
      for (const auto& [sender, value] : mailbox.take()) ASSERT_EQ(value, next[sender]++);
    }
  }
  EXPECT_EQ(next[0] + next[1], 2 * kValues);
  // The last post may have set the event after its value was taken.
  EXPECT_TRUE(mailbox.take().empty());
  EXPECT_FALSE(is_readable(mailbox, 0)) << "the receiver would not sleep";
}

TEST(Mailbox, WakesWithoutAValueOnce) {
  Mailbox<int> mailbox;
  EXPECT_FALSE(is_readable(mailbox, 0));
  mailbox.wake();
  EXPECT_TRUE(is_readable(mailbox, 0));
  EXPECT_TRUE(mailbox.take().empty());
  EXPECT_FALSE(is_readable(mailbox, 0));
}

}  // namespace
}  // namespace syncopate
