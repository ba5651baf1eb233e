#include "ps/coordinator/stop_kind.h"

#include <gtest/gtest.h>

#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

TEST(StopKind, KeepsItsName) {
  for (const char* name : {"SIGINT", "SIGTERM", "SIGUSR1", "--max-seconds", "SIGUSR2", "SIGXCPU"}) {
    EXPECT_EQ(stop_name(stop_kind(name)), name);
  }
}

TEST(StopKind, OfAnUnknownNameIsARequest) {
  EXPECT_EQ(stop_kind("SIGQUIT"), StopKind::kRequest);
  EXPECT_EQ(stop_name(StopKind::kRequest), "a request");
}

TEST(StopKind, KeepsItsNumberInMessages) {
  EXPECT_EQ(to_wire(StopKind::kSigint), 0);
  EXPECT_EQ(to_wire(StopKind::kComplete), 4);
  EXPECT_EQ(to_wire(StopKind::kSighup), 5);
  EXPECT_EQ(to_wire(StopKind::kSigxcpu), 7);
  EXPECT_EQ(to_wire(std::nullopt), -1);
  EXPECT_EQ(stop_kind_from_wire(2), StopKind::kSigusr1);
  EXPECT_EQ(stop_kind_from_wire(-1), std::nullopt);
  EXPECT_EQ(stop_kind_from_wire(77), StopKind::kRequest);
}

TEST(StopCounts, DoesNotCountTimeIsUpAsEarlyStop) {
  StopCounts stops;
  stops[StopKind::kComplete] = 2;
  EXPECT_EQ(stops.early_stop(), std::nullopt);
  StopCounts more;
  more[StopKind::kSigterm] = 1;
  stops += more;
  EXPECT_EQ(stops.early_stop(), StopKind::kSigterm);
}

}  // namespace
}  // namespace syncopate::ps
