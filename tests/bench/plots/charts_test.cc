#include "bench/plots/charts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

// Returns the chart's file; both axes go from 0 to 10.
std::string drawn(std::vector<Point> points) {
  return draw(LineChart{.title = "",
                        .x = linear_axis("x", 0.0, 10.0, 5, false),
                        .y = linear_axis("y", 0.0, 10.0, 5, false),
                        .curves = {{.points = std::move(points), .stroke = "#123456"}}})
      .file();
}

std::string path_of(const std::string& file, std::size_t number) {
  std::size_t at = 0;
  for (std::size_t end = 0; (end = file.find("stroke=\"#123456\"", end + 1)) != file.npos; ++at) {
    const std::size_t begin = file.rfind("d=\"", end) + 3;
    if (at == number) return file.substr(begin, file.find('"', begin) - begin);
  }
  return "";
}

// The plot area goes from 40 to 432 and, downwards, from 34 to 260.
TEST(LineChart, LeavesOutNaN) {
  EXPECT_EQ(path_of(drawn({{0, 0}, {5, NAN}, {10, 10}}), 0), "M40.0,260.0 L432.0,34.0");
}

TEST(LineChart, CutsOffWhatLiesBelowItsAxis) {
  const std::string file = drawn({{0, 10}, {2, -10}, {8, -10}, {10, 10}});
  EXPECT_EQ(path_of(file, 0), "M40.0,34.0 L79.2,260.0");
  EXPECT_EQ(path_of(file, 1), "M392.8,260.0 L432.0,34.0");
}

TEST(BarChart, StacksSegmentsWithoutNaN) {
  const std::string file =
      draw(BarChart{.title = "",
                    .axis_title = "t",
                    .rows = {{.label = "a",
                              .segments = {{10, "#111111"}, {NAN, "#222222"}, {30, "#333333"}}}},
                    .legend = {}})
          .file();
  // 40 is 412 units wide.
  EXPECT_TRUE(contains(file, "x=\"12.0\" y=\"46.0\" width=\"103.0\"",
                       "x=\"115.0\" y=\"46.0\" width=\"309.0\""));
  EXPECT_FALSE(contains(file, "#222222"));
}

}  // namespace
}  // namespace syncopate::bench
