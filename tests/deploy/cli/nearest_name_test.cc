#include "deploy/cli/nearest_name.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(NearestName, FindsTheNameOneSlipAway) {
  EXPECT_EQ(nearest_name("adm", {"sgd", "momentum", "adam", "adamw"}), "adam");
  EXPECT_EQ(nearest_name("--modle", {"--data", "--model"}), "--model");
}

TEST(NearestName, StaysSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest_name("lion", {"sgd", "momentum", "adam"}), std::nullopt);
}

TEST(NearestName, SuggestionListsEveryName) {
  EXPECT_EQ(suggest("sgb", {"sgd", "adam"}), "; did you mean 'sgd'? Choose one of sgd, adam");
  EXPECT_EQ(suggest("zzzzzz", {"sgd", "adam"}), "; choose one of sgd, adam");
}

}  // namespace
}  // namespace syncopate
