#include "models/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace syncopate {
namespace {

TEST(Environment, DistinguishesAnUnsetVariableFromAnEmptyOne) {
  const Environment environment({{"RANK", "3"}, {"EMPTY", ""}});
  EXPECT_EQ(environment.get("RANK"), "3");
  EXPECT_EQ(environment.get("EMPTY"), "");
  EXPECT_EQ(environment.get("WORLD_SIZE"), std::nullopt);
}

TEST(Environment, CopiesTheVariablesOfTheProcess) {
  EXPECT_EQ(Environment::of_process().get("PATH"), std::string(std::getenv("PATH")));
}

}  // namespace
}  // namespace syncopate
