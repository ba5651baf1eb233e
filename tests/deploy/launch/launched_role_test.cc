#include "deploy/launch/launched_role.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(OutputPrefixer, PutsTheNameInFrontOfEveryLine) {
  OutputPrefixer lines("worker 0");
  EXPECT_EQ(lines.add("one\n\ntwo\n"), "[worker 0] one\n[worker 0] \n[worker 0] two\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(OutputPrefixer, HoldsALineBackUntilItIsWhole) {
  OutputPrefixer lines("w");
  EXPECT_EQ(lines.add("st"), "");
  EXPECT_EQ(lines.add("ep"), "");
  EXPECT_EQ(lines.add(" 1\nste"), "[w] step 1\n");
  EXPECT_EQ(lines.add("p 2\n"), "[w] step 2\n");
}

TEST(OutputPrefixer, GivesALastLineWithoutNewlineItsNewline) {
  OutputPrefixer lines("w");
  EXPECT_EQ(lines.add("whole\nrest"), "[w] whole\n");
  EXPECT_EQ(lines.finish(), "[w] rest\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(OutputPrefixer, BreaksALineThatNeverEnds) {
  OutputPrefixer lines("w");
  const std::string most(OutputPrefixer::kLongestLine, 'x');
  EXPECT_EQ(lines.add(most + "y"), "[w] " + most + "\n");
  EXPECT_EQ(lines.add("z\n"), "[w] yz\n");
}

}  // namespace
}  // namespace syncopate
