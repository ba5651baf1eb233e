#include "worker/service_time.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

TEST(ServiceTime, IsTheSameForEveryStepWhenConstant) {
  const ServiceTimeOptions options = parse_service_time("constant:20", "--service-time");
  EXPECT_EQ(service_time(options, 1), milliseconds(20));
  EXPECT_EQ(service_time(options, 77), milliseconds(20));
}

TEST(ServiceTime, IsAFunctionOfSeedWorkerAndStep) {
  ServiceTimeOptions options = parse_service_time("exponential:5", "--service-time");
  const auto drawn = service_time(options, 3);
  EXPECT_EQ(service_time(options, 3), drawn);
  EXPECT_NE(service_time(options, 4), drawn);
  options.worker = 1;
  EXPECT_NE(service_time(options, 3), drawn);
}

TEST(ServiceTime, HasTheMeanThatWasAskedFor) {
  const ServiceTimeOptions options = parse_service_time("exponential:5", "--service-time");
  std::chrono::nanoseconds sum(0);
  constexpr int kDraws = 20000;
  for (int step = 0; step < kDraws; ++step) sum += service_time(options, step);
  // Five standard errors of the mean: 5 ms * 5 / sqrt(20000).
  const double mean = std::chrono::duration<double, std::milli>(sum).count() / kDraws;
  EXPECT_NEAR(mean, 5.0, 0.18);
}

TEST(ServiceTime, RefusesWhatIsNone) {
  for (const char* text : {"", "20", "constant", "constant:", "constant:x", "constant:-1",
                           "constant:1e9", "uniform:3", "exponential:nan"}) {
    EXPECT_THROW(parse_service_time(text, "--service-time"), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate
