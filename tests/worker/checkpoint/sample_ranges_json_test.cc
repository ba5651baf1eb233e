#include "worker/checkpoint/sample_ranges_json.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using Ranges = std::vector<ps::SampleRange>;

TEST(SampleRangesAsJson, AreAListOfTriples) {
  EXPECT_EQ(to_json({}), "[]");
  EXPECT_EQ(to_json(Ranges{{0, 64, 128}, {2, 0, 7}}), "[[0,64,128],[2,0,7]]");
}

TEST(SampleRangesAsJson, AreParsedBack) {
  const Ranges ranges = {{0, 64, 128}, {3, 0, 9'223'372'036'854'775'807}};
  EXPECT_EQ(parse_sample_ranges(to_json(ranges)), ranges);
  EXPECT_EQ(parse_sample_ranges("[]"), Ranges{});
  EXPECT_EQ(parse_sample_ranges(" [ [ 1, 2, 3 ] ] "), (Ranges{{1, 2, 3}}));
}

TEST(SampleRangesAsJson, AreRefusedInOtherForms) {
  for (const char* text : {"", "{}", "7", "[", "[1,2,3]", "[[1,2]]", "[[1,2,3,4]]", "[[1,2,3.5]]",
                           "[[-1,2,3]]", "[[1,-2,3]]", "[[1,3,3]]", "[[1,4,3]]", R"([["1",2,3]])",
                           "[[1,2,9223372036854775808]]", "[[1,2,null]]", "[[1,2,3]] x"}) {
    EXPECT_EQ(parse_sample_ranges(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace syncopate
