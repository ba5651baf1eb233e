// Tests the step time of a map's clusters: what two measurements agree on, and how a folder keeps
// it.
#include "bench/compare/measured_step.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "bench/compare/map_file.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

TEST(MeasuredStep, IsTheGeometricMeanInThreeDigits) {
  EXPECT_EQ(agreed_step_time(0.8, 0.85), 0.825);
  EXPECT_EQ(agreed_step_time(0.85, 0.8), 0.825);
  EXPECT_EQ(agreed_step_time(12.345, 12.345), 12.3);
  EXPECT_EQ(agreed_step_time(1.0, 1.1), 1.05) << "the limit itself";
}

TEST(MeasuredStep, IsRefusedIfTwoMeasurementsDiffer) {
  for (const auto& [first, second] : {std::pair(1.0, 1.11), {1.11, 1.0}, {0.5, 40.0}}) {
    const std::string what = message_of<UsageError>(
        [&, &first = first, &second = second] { agreed_step_time(first, second); });
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_TRUE(contains(what, "give --step-time MILLISECONDS"));
  }
}

TEST(MeasuredStep, IsTheStepOfEveryClusterWithoutItsOwn) {
  CompareOptions options;
  options.variants = {parse_variant("mirrored", 4, 1)};
  options.cluster_words = {"equal,jitter", "mine{service-time=constant:7}"};
  set_step_time(options, 0.83);
  ASSERT_EQ(options.clusters.size(), 3U);
  EXPECT_EQ(options.step_time.milliseconds, 0.83);
  EXPECT_DOUBLE_EQ(options.clusters[0].faults.service_time.mean_milliseconds, 0.83);
  EXPECT_DOUBLE_EQ(options.clusters[1].faults.service_time.mean_milliseconds, 0.83);
  EXPECT_DOUBLE_EQ(options.clusters[2].faults.service_time.mean_milliseconds, 7.0);
}

TEST(MeasuredStep, IsKeptInTheFolderOfTheMap) {
  const fs::path dir = fs::path(testing::TempDir()) / ("map_" + std::to_string(getpid()));
  EXPECT_FALSE(step_time_in(dir).has_value());
  const std::vector<PlannedFolder> planned = {{"equal", {}}};
  MapFile(dir, planned, {.milliseconds = 0.83, .is_measured = true}, false).write("");
  ASSERT_TRUE(step_time_in(dir).has_value());
  EXPECT_EQ(step_time_in(dir)->milliseconds, 0.83);
  EXPECT_TRUE(step_time_in(dir)->is_measured);
  EXPECT_THROW(MapFile(dir, planned, {.milliseconds = 0.84}, false), UsageError);
  MapFile(dir, planned, {.milliseconds = 0.83}, false).write("");
  EXPECT_FALSE(step_time_in(dir)->is_measured);
  MapFile(dir, planned, {.milliseconds = 0.84}, true).write("");
  EXPECT_EQ(step_time_in(dir)->milliseconds, 0.84);
  fs::remove_all(dir);
}

}  // namespace
}  // namespace syncopate::bench
