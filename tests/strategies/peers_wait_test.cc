// Waiting for other replicas, told from waiting for bytes.
#include "strategies/peers_wait.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate {
namespace {

// Two replicas, each step's seconds that they stand.
struct Step {
  double of_first = 0.0;
  double of_second = 0.0;
};

// Both, after so many steps alike: as the strategies use them.
struct Waits {
  PeersWait first;
  PeersWait second;
  Step exposed;

  void take(const Step& step) {
    const double least = std::min(first.stood_seconds(), second.stood_seconds());
    exposed.of_first += step.of_first;
    exposed.of_second += step.of_second;
    first.end_step(exposed.of_first, least);
    second.end_step(exposed.of_second, least);
  }
};

TEST(PeersWait, IsWhatOneStandsLongerThanTheLastToCome) {
  Waits waits;
  waits.take({.of_first = 5.0, .of_second = 1.0});
  waits.take({.of_first = 1.0, .of_second = 3.0});
  waits.take({});  // what was least is known a step later
  EXPECT_DOUBLE_EQ(waits.first.waited_seconds(), 4.0);
  EXPECT_DOUBLE_EQ(waits.second.waited_seconds(), 2.0);
}

TEST(PeersWait, IsNothingWhereBytesTakeAllTheTime) {
  Waits waits;
  for (int step = 0; step < 3; ++step) waits.take({.of_first = 2.0, .of_second = 2.0});
  EXPECT_DOUBLE_EQ(waits.first.waited_seconds(), 0.0);
  EXPECT_DOUBLE_EQ(waits.second.waited_seconds(), 0.0);
}

}  // namespace
}  // namespace syncopate
