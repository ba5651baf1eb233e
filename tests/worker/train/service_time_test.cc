#include "worker/train/service_time.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/temporary_folder.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

TEST(ServiceTime, IsTheSameForEveryStepWhenConstant) {
  const ServiceTimeOptions options = parse_service_time("constant:20", "--service-time");
  EXPECT_EQ(service_time(options, 0, 1), milliseconds(20));
  EXPECT_EQ(service_time(options, 0, 77), milliseconds(20));
}

TEST(ServiceTime, IsAFunctionOfSeedWorkerAndStep) {
  const ServiceTimeOptions options = parse_service_time("exponential:5", "--service-time");
  const auto drawn = service_time(options, 0, 3);
  EXPECT_EQ(service_time(options, 0, 3), drawn);
  EXPECT_NE(service_time(options, 0, 4), drawn);
  EXPECT_NE(service_time(options, 1, 3), drawn);
}

TEST(ServiceTime, HasTheRequestedMean) {
  for (const char* text : {"exponential:5", "lognormal:5", "lognormal:5:0.9", "bursts:5:4"}) {
    const ServiceTimeOptions options = parse_service_time(text, "--service-time");
    std::chrono::nanoseconds sum(0);
    constexpr int kDraws = 20000;
    for (int step = 0; step < kDraws; ++step) sum += service_time(options, 0, step);
    // The tolerance is five standard errors of the mean: the widest of these distributions has a
    // standard deviation of 5.6 ms, so the tolerance is 5 ms * 5.6 / sqrt(20000).
    const double mean = std::chrono::duration<double, std::milli>(sum).count() / kDraws;
    EXPECT_NEAR(mean, 5.0, 0.2) << text;
  }
}

TEST(ServiceTime, OfASlowWorkerIsMultipliedByItsFactor) {
  ServiceTimeOptions options = parse_service_time("exponential:5", "--service-time");
  const auto drawn = service_time(options, 3, 8);
  options.slow.push_back(parse_slowness("worker=3,factor=4"));
  EXPECT_NEAR(static_cast<double>(service_time(options, 3, 8).count()),
              4.0 * static_cast<double>(drawn.count()), 2.0);
  EXPECT_EQ(service_time(options, 2, 8),
            service_time(parse_service_time("exponential:5", ""), 2, 8));
}

TEST(ServiceTime, IsReadFromTheTextOfEachKind) {
  for (const std::string text : {"constant:20", "exponential:5", "lognormal:5:0.9", "bursts:5:4"}) {
    EXPECT_EQ(to_text(parse_service_time(text, "--service-time")), text);
  }
}

TEST(ServiceTime, IsDescribedInWords) {
  EXPECT_EQ(describe_service_time("constant:20"), "20 ms in every step");
  EXPECT_EQ(describe_service_time("exponential:1"), "1 ms on average, exponentially distributed");
  EXPECT_EQ(describe_service_time("bursts:5:8"),
            "5 ms on average; in bursts of 20 steps, about 10 % of all, 8 times as long as "
            "otherwise");
  EXPECT_EQ(describe_service_time("file:gone.txt"),
            "the measured times in gone.txt, in their order, from a random one on");
  EXPECT_THROW(describe_service_time("often"), UsageError);
}

TEST(ServiceTime, OfBurstsIsLongInGroupsOfSteps) {
  const ServiceTimeOptions options = parse_service_time("bursts:19:10", "--service-time");
  int changes = 0;
  int slow = 0;
  constexpr int kSteps = 20'000;
  for (int step = 1; step <= kSteps; ++step) {
    const auto time = service_time(options, 0, step);
    // The mean is 19 ms: nine tenths of the steps take 10 ms, the others 100 ms.
    ASSERT_TRUE(time == milliseconds(10) || time == milliseconds(100)) << time.count();
    slow += time == milliseconds(100) ? 1 : 0;
    changes += step > 1 && time != service_time(options, 0, step - 1) ? 1 : 0;
  }
  // 1,000 groups of 20 steps; four standard errors of their number are 38 groups.
  EXPECT_NEAR(slow, kSteps / 10, 38 * 20);
  EXPECT_LT(changes, 2 * kSteps / 20 / 5);
}

TEST(ServiceTime, OfAFileKeepsTheOrderOfItsTimes) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "times").string();
  std::ofstream(file) << "1\n2\n6\n";
  const ServiceTimeOptions options = parse_service_time("file:" + file, "--service-time");
  EXPECT_DOUBLE_EQ(options.mean_milliseconds, 3.0);
  std::string order;
  for (int step = 1; step <= 4; ++step) {
    order += std::to_string(service_time(options, 0, step) / milliseconds(1));
  }
  EXPECT_NE(std::string("1261261").find(order), std::string::npos) << order;
  // The text keeps a mean that was changed, and so do the times.
  const ServiceTimeOptions scaled = parse_service_time("file:" + file + ":6", "--service-time");
  EXPECT_EQ(to_text(scaled), "file:" + file + ":6");
  EXPECT_EQ(service_time(scaled, 0, 1), 2 * service_time(options, 0, 1));
}

TEST(ServiceTime, OfAFileMayHaveBlankLinesAndAColonInItsName) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a:b").string();
  std::ofstream(file) << "1\r\n3 \n\n";
  EXPECT_DOUBLE_EQ(parse_service_time("file:" + file, "--service-time").mean_milliseconds, 2.0);
}

TEST(ServiceTime, RefusesAFileWithoutTimes) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "times").string();
  EXPECT_THROW(parse_service_time("file:" + file, "--service-time"), UsageError) << "missing";
  EXPECT_THROW(parse_service_time("file:" + folder.path().string(), "--service-time"), UsageError);
  for (const char* text : {"", "0\n", "1\nx\n", "-1\n"}) {
    std::ofstream(file) << text;
    EXPECT_THROW(parse_service_time("file:" + file, "--service-time"), UsageError) << text;
  }
}

TEST(ServiceTime, IsParsedFromItsFlags) {
  const Pause pause = parse_pause("worker=1,at=20s,for=0.5");
  EXPECT_EQ(pause.worker, 1);
  EXPECT_EQ(pause.at_seconds, 20.0);
  EXPECT_EQ(pause.for_seconds, 0.5);
  for (const char* text :
       {"", "worker=1", "worker=1,factor=x", "worker=1.5,factor=2", "worker=1,factor=2,factor=3",
        "worker=-1,factor=2", "1,2", "worker=1,at=2,for=3", "worker=1,factor=0"}) {
    EXPECT_THROW(parse_slowness(text), UsageError) << text;
  }
  for (const char* text : {"", "worker=1,at=20s", "worker=1,at=20ms,for=5s", "at=1,for=2"}) {
    EXPECT_THROW(parse_pause(text), UsageError) << text;
  }
}

TEST(StepDelays, PauseOnlyTheirOwnWorkerAndOnlyOnce) {
  ServiceTimeOptions options;
  options.pauses.push_back({.worker = 1, .at_seconds = 0.5, .for_seconds = 0.05});
  const std::chrono::steady_clock::time_point begin;
  StepDelays other(options, 0);
  EXPECT_EQ(other.due(1, begin), milliseconds(0));
  EXPECT_EQ(other.due(2, begin + milliseconds(500)), milliseconds(0));
  StepDelays paused(options, 1);
  EXPECT_EQ(paused.due(1, begin), milliseconds(0));
  EXPECT_EQ(paused.due(2, begin + milliseconds(499)), milliseconds(0));
  EXPECT_EQ(paused.due(3, begin + milliseconds(500)), milliseconds(50));
  EXPECT_EQ(paused.due(4, begin + milliseconds(501)), milliseconds(0)) << "again";
}

TEST(StepDelays, AreSpentByTheCaller) {
  ServiceTimeOptions options;
  options.pauses.push_back({.worker = 0, .at_seconds = 0.0, .for_seconds = 0.05});
  StepDelays delays(options, 0);
  const auto begin = std::chrono::steady_clock::now();
  delays.begin(1);
  delays.before_use(0);
  delays.before_push(0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST(StepDelays, AreSpentInPartsByTheLayers) {
  GraphBuilder builder("two");
  NodeId x = builder.dense(builder.input({30}, {}), "first", 10);
  const Graph graph = builder.finish(builder.dense(x, "second", 10));
  const ArenaLayout layout = graph.parameter_layout();
  ServiceTimeOptions options;
  options.pauses.push_back({.worker = 0, .at_seconds = 0.0, .for_seconds = 0.12});
  std::vector<double> slept;  // milliseconds
  const auto sleep = [&](std::chrono::nanoseconds time) {
    slept.push_back(std::chrono::duration<double, std::milli>(time).count());
    return time + milliseconds(slept.size() == 1 ? 10 : 0);  // the first part takes longer
  };
  StepDelays delays(options, 0, StepProfile(graph, layout, plan_buckets(layout, 300)), sleep);
  delays.begin(1);
  delays.before_use(1);  // the first layer's values are used at once
  EXPECT_TRUE(slept.empty());
  delays.before_use(0);
  delays.before_push(0);
  delays.before_push(1);
  // The first layer has three quarters of the work: 30 of 40 ms forward and 60 of 80 ms backward.
  ASSERT_EQ(slept.size(), 3U);
  EXPECT_NEAR(slept[0], 30.0, 1e-3);
  EXPECT_NEAR(slept[1], 60.0 - 30.0 - 10.0, 1e-3);
  EXPECT_NEAR(slept[2], 60.0, 1e-3);
}

TEST(StepDelays, WithoutAProfileComeBeforeTheFirstValuesAreUsed) {
  ServiceTimeOptions options;
  options.pauses.push_back({.worker = 0, .at_seconds = 0.0, .for_seconds = 0.12});
  std::vector<std::chrono::nanoseconds> slept;
  StepDelays delays(options, 0, std::nullopt, [&](std::chrono::nanoseconds time) {
    slept.push_back(time);
    return time;
  });
  delays.begin(1);
  delays.before_use(1);
  delays.before_use(0);
  delays.before_push(0);
  EXPECT_EQ(slept, std::vector<std::chrono::nanoseconds>{milliseconds(120)});
}

TEST(ServiceTime, RefusesOtherText) {
  for (const char* text : {"", "20", "constant", "constant:", "constant:x", "constant:-1",
                           "constant:1e9", "uniform:3", "exponential:nan", "constant:1:2",
                           "constant:5:", "lognormal:5:", "bursts:5:", "bursts:1:0", "file:"}) {
    EXPECT_THROW(parse_service_time(text, "--service-time"), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate
