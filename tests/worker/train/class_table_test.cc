#include "worker/train/class_table.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

using Words = std::vector<std::string>;

TEST(ClassNames, AreTheSameAfterTheyAreJoinedAndSplit) {
  const Words names = {"T-shirt/top", "black cat", "d\xC3\xB6g"};
  EXPECT_EQ(split_class_names(join_class_names(names), 3), names);
  EXPECT_EQ(split_class_names(join_class_names({}), 3), Words());
}

TEST(ClassNames, AreLeftOutIfTheyAreNotThoseOfTheClasses) {
  EXPECT_EQ(split_class_names(join_class_names({"cat", "dog"}), 3), Words());
  EXPECT_EQ(split_class_names(join_class_names({"cat", "dog"}), 1), Words());
  EXPECT_EQ(split_class_names("cat/dog", 2), Words());
}

}  // namespace
}  // namespace syncopate
