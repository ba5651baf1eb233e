#include "bench/step/step_work.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

DeviceFigures some_figures() {
  return {.ceilings = {.copy_bytes_per_second = 4e12, .product_flops_per_second = 8e14},
          .work = {.flops = 2e12, .bytes = 1e10},
          .busy = {0.5, 0.75, 1.0},
          .memory_bytes = 3.0 * (1 << 30)};
}

TEST(DeviceFigures, AppearBesideTheLimitsOfTheDevice) {
  EXPECT_EQ(describe(some_figures(), 0.01),
            "200 TFLOP/s, 25.0% of the 800 of a large product; at least 1.00 TB/s, 25.0% of the "
            "4.00 of a large copy; 75.0% busy, 3.00 GiB in use");
}

TEST(DeviceFigures, ReportAMissingUtilisationOfTheDriver) {
  DeviceFigures figures = some_figures();
  figures.busy.clear();
  EXPECT_TRUE(contains(describe(figures, 0.01), "does not report"));
  EXPECT_FALSE(figures_json(figures, 0.01).contains("busy"));
}

TEST(DeviceFigures, AreNumbersInJson) {
  const nlohmann::json json = figures_json(some_figures(), 0.01);
  EXPECT_DOUBLE_EQ(json.at("flops_per_second"), 2e14);
  EXPECT_DOUBLE_EQ(json.at("bytes_per_second"), 1e12);
  EXPECT_DOUBLE_EQ(json.at("ceiling_bytes_per_second"), 4e12);
  EXPECT_DOUBLE_EQ(json.at("busy"), 0.75);
}

}  // namespace
}  // namespace syncopate::bench
