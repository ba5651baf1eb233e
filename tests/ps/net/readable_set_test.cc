#include "ps/net/readable_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ps/net/wake_event.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using Numbers = std::vector<std::uint32_t>;

TEST(AReadableSet, ReportsTheNumberOfEachReadableDescriptorOnce) {
  ReadableSet set;
  std::vector<WakeEvent> events(600);
  std::vector<std::unique_ptr<ReadableSet::Registration>> registrations;
  for (std::uint32_t i = 0; i < 300; ++i) {
    registrations.push_back(std::make_unique<ReadableSet::Registration>(
        set, std::vector{events[2 * i].descriptor(), events[2 * i + 1].descriptor()}, i));
  }
  EXPECT_EQ(set.wait(milliseconds(0)), Numbers{});
  events[14].notify();
  events[15].notify();
  events[599].notify();
  EXPECT_EQ(set.wait(milliseconds(-1)), (Numbers{7, 299}));
  EXPECT_EQ(set.wait(milliseconds(-1)), (Numbers{7, 299})) << "they are still readable";
  events[14].clear();
  events[15].clear();
  EXPECT_EQ(set.wait(milliseconds(-1)), Numbers{299});
}

TEST(AReadableSet, ForgetsDescriptorsWithTheirRegistration) {
  ReadableSet set;
  WakeEvent event;
  event.notify();
  {
    const ReadableSet::Registration registration(set, {event.descriptor()}, 1);
    EXPECT_EQ(set.wait(milliseconds(-1)), Numbers{1});
  }
  EXPECT_EQ(set.wait(milliseconds(0)), Numbers{});
  const ReadableSet::Registration again(set, {event.descriptor()}, 2);
  EXPECT_EQ(set.wait(milliseconds(-1)), Numbers{2});
}

}  // namespace
}  // namespace syncopate
