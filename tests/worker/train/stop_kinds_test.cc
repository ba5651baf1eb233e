#include "worker/train/stop_kinds.h"

#include <gtest/gtest.h>

#include "strategies/variable_store.h"

namespace syncopate {
namespace {

TEST(StopKinds, KeepTheirNamesOnTheWay) {
  for (const char* name : {"SIGINT", "SIGTERM", "SIGUSR1"}) {
    EXPECT_EQ(stop_name(stop_kind(name)), name);
  }
}

TEST(StopKinds, OfOtherNamesAreRequests) {
  EXPECT_EQ(stop_kind("SIGHUP"), stop_kind("a request"));
  EXPECT_EQ(stop_name(stop_kind("SIGHUP")), "a request");
}

}  // namespace
}  // namespace syncopate
