// Tests the command line of programs with a network and data of their own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

TEST(FlagsOfAProgram, AreThoseOfTrainWithoutNetworkAndData) {
  const auto parse_own = [](const std::vector<std::string>& flags, bool takes_other_flags) {
    return parse_train(flags, {}, OwnWorkload{"moons", takes_other_flags});
  };
  const auto options = std::get<TrainOptions>(
      parse_own(as_words("--strategy mirrored --steps 9 --split val=0.1"), false));
  EXPECT_EQ(options.strategy.name, "mirrored");
  EXPECT_EQ(options.loop.total_steps, 9);
  EXPECT_EQ(options.model, "");
  EXPECT_EQ(options.data, "");
  for (const char* flag : {"--model", "--data", "--head", "--normalize", "--image-size"}) {
    EXPECT_EQ(message_of<UsageError>([&] {
                parse_own({flag, "8"}, true);
              }),
              std::string(flag) + ": moons has a network and data of its own; leave the flag out")
        << flag;
  }
  EXPECT_THROW(parse_own({"--table", "points.csv"}, false), UsageError);
  EXPECT_NO_THROW(parse_own({"--table", "points.csv"}, true));
  const std::string help = std::get<TextOptions>(parse_own({"--help"}, false)).text;
  EXPECT_TRUE(contains(help, "--strategy"));
  EXPECT_FALSE(contains(help, "--model"));
  EXPECT_TRUE(contains(help, "moons --strategy mirrored"));
}

}  // namespace
}  // namespace syncopate
