#include "strategies/cluster/failure_notice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace syncopate {
namespace {

TEST(FailureNotice, AcceptsASubscriptionAfterASubscriberHasThrown) {
  const auto notice = std::make_shared<FailureNotice>();
  notice->subscribe([](const std::string&) { throw std::runtime_error("no"); });
  EXPECT_THROW(notice->set("rank 2 was lost"), std::runtime_error);

  const auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> reason = promise->get_future();
  // The subscribing thread is detached, so that the test ends even if subscribe() blocks.
  std::thread([notice, promise] {
    notice->subscribe([promise](const std::string& text) { promise->set_value(text); });
  }).detach();
  ASSERT_EQ(reason.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(reason.get(), "rank 2 was lost");
}

}  // namespace
}  // namespace syncopate
