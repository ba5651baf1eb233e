#include "models/base/lower_case.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(LowerCase, ChangesLettersOfAsciiOnly) {
  EXPECT_EQ(lower_case("Class_ID 7"), "class_id 7");
  EXPECT_EQ(lower_case("\xC3\x84"), "\xC3\x84");
  EXPECT_EQ(lower_case(""), "");
}

}  // namespace
}  // namespace syncopate
