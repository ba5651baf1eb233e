#include "bench/step/retune.h"

#include <gtest/gtest.h>

#include "models/zoo/zoo.h"
#include "tests/support/contains.h"

namespace syncopate::bench {
namespace {

TEST(TunableConvolutions, AreTheThreeShapesOfTheThinResnetsOnceEach) {
  const NetworkInput input = {.sample_shape = {32, 32, 3}, .classes = 10, .input = {}};
  const std::vector<ConvProblem> problems =
      tunable_convolutions({resnet20(input), resnet56(input)});
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].c, 16);
  EXPECT_EQ(problems[1].h, 16);
  EXPECT_EQ(problems[2].k, 64);
}

TEST(FormatRows, LeavesOutShapesForWhichDirectWinsThroughout) {
  constexpr auto kDirect = ConvAlgorithm::kDirect;
  constexpr auto kWinograd = ConvAlgorithm::kWinograd;
  const std::string text = format_rows(
      {{16, 16, 32, kDirect, kDirect, kDirect}, {32, 32, 16, kWinograd, kDirect, kWinograd}});
  EXPECT_FALSE(contains(text, "{16"));
  EXPECT_TRUE(contains(text, "{32, 32, 16, kWinograd, kDirect, kWinograd},\n"));
}

}  // namespace
}  // namespace syncopate::bench
