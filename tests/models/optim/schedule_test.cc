#include "models/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/base/errors.h"

namespace syncopate {
namespace {

TEST(ConstantSchedule, KeepsTheRate) {
  const Schedule schedule({.learning_rate = 0.1, .total_epochs = 3.0});
  EXPECT_EQ(schedule.learning_rate(0.0), 0.1);
  EXPECT_EQ(schedule.learning_rate(2.99), 0.1);
}

TEST(StepSchedule, DropsAtEachMilestone) {
  const Schedule schedule({.kind = ScheduleKind::kStep,
                           .learning_rate = 1.0,
                           .total_epochs = 10.0,
                           .milestones = {4.0, 8.0},
                           .factor = 0.1});
  EXPECT_DOUBLE_EQ(schedule.learning_rate(3.999), 1.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(4.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(9.0), 0.01);
}

TEST(CosineSchedule, FallsFromTheRateToZero) {
  const Schedule schedule(
      {.kind = ScheduleKind::kCosine, .learning_rate = 2.0, .total_epochs = 10.0});
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0.0), 2.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(5.0), 1.0);
  // After a third of the run the cosine schedule is at 60 degrees, whose cosine is a half.
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10.0 / 3.0), 1.5);
  EXPECT_NEAR(schedule.learning_rate(10.0), 0.0, 1e-15);
  EXPECT_NEAR(schedule.learning_rate(11.0), 0.0, 1e-15);  // the rate stays zero after the end
}

TEST(Warmup, RisesLinearlyFromAHundredthOfTheRate) {
  const Schedule schedule({.learning_rate = 1.0, .total_epochs = 10.0, .warmup_epochs = 2.0});
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0.0), 0.01);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1.0), 0.505);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2.0), 1.0);
}

TEST(Warmup, PrecedesTheCosine) {
  const Schedule schedule({.kind = ScheduleKind::kCosine,
                           .learning_rate = 1.0,
                           .total_epochs = 10.0,
                           .warmup_epochs = 2.0});
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(6.0), 0.5);
}

TEST(Warmup, MayLastForTheWholeRun) {
  const Schedule schedule({.kind = ScheduleKind::kCosine,
                           .learning_rate = 1.0,
                           .total_epochs = 2.0,
                           .warmup_epochs = 2.0});
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2.0), 1.0);
}

TEST(Schedule, RefusesOptionsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Schedule({.learning_rate = nan}), UsageError);
  EXPECT_THROW(Schedule({.learning_rate = 0.0}), UsageError);
  EXPECT_THROW(Schedule({.learning_rate = -1.0}), UsageError);
  EXPECT_THROW(Schedule({.learning_rate = HUGE_VAL}), UsageError);
  EXPECT_THROW(Schedule({.total_epochs = 0.0}), UsageError);
  EXPECT_THROW(Schedule({.total_epochs = 3.0, .warmup_epochs = 4.0}), UsageError);
  EXPECT_THROW(Schedule({.warmup_epochs = nan}), UsageError);
  EXPECT_THROW(Schedule({.milestones = {4.0, 2.0}}), UsageError);
  EXPECT_THROW(Schedule({.milestones = {1.0, nan}}), UsageError);
  EXPECT_THROW(Schedule({.factor = 0.0}), UsageError);
}

}  // namespace
}  // namespace syncopate
