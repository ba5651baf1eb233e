#include "ps/server/update_threads.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "ps/server/served_variables.h"
#include "tests/ps/server/served_job.h"

namespace syncopate::ps::testing {
namespace {

TEST(UpdateThreads, ReportTheErrorThatEndsAThread) {
  const auto served = make_served_variables(declaration_of({}), 0);
  std::promise<std::string> failure;
  UpdateThreads threads(
      1, [] { throw std::bad_alloc(); },
      [&](const std::exception& error) { failure.set_value(error.what()); });
  served->shard->join(0, 1, 0);
  std::vector<float> values(8);
  ASSERT_TRUE(served->shard->read({.worker = 0, .incarnation = 1, .bucket = 0, .values = values}));
  threads.work_on(served->shard, 0, 1);
  auto ended = failure.get_future();
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(ended.get(), std::bad_alloc().what());
}

}  // namespace
}  // namespace syncopate::ps::testing
