#include "strategies/cluster/failure_notice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace syncopate {
namespace {

TEST(FailureNotice, TakesSubscriptionsAfterASubscriberHasThrown) {
  const auto notice = std::make_shared<FailureNotice>();
  notice->subscribe([](const std::string&) { throw std::runtime_error("no"); });
  EXPECT_THROW(notice->set("rank 2 was lost"), std::runtime_error);

  const auto told = std::make_shared<std::promise<std::string>>();
  std::future<std::string> reason = told->get_future();
  // Detached: should it wait for ever, then this test does not.
  std::thread([notice, told] {
    notice->subscribe([told](const std::string& text) { told->set_value(text); });
  }).detach();
  ASSERT_EQ(reason.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(reason.get(), "rank 2 was lost");
}

}  // namespace
}  // namespace syncopate
