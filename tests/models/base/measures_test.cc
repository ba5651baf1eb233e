#include "models/base/measures.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

TEST(Measures, HaveTheUnitsThatPeopleWrite) {
  EXPECT_DOUBLE_EQ(parse_seconds("250us", "--link-delay"), 250e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5ms", "--link-delay"), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("2", "--link-delay"), 2.0);
  EXPECT_DOUBLE_EQ(parse_rate("1gbit", "--link-rate"), 125e6);
  EXPECT_DOUBLE_EQ(parse_rate("50mb", "--link-rate"), 50e6);
}

TEST(Measures, ThatAreMisspeltAreRefused) {
  for (const char* text : {"", "ms", "1m", "-1ms", "nan", "1e30s"}) {
    EXPECT_THROW(parse_seconds(text, "--link-delay"), UsageError) << text;
  }
  for (const char* text : {"", "1", "0gbit", "gbit", "1bit"}) {
    EXPECT_THROW(parse_rate(text, "--link-rate"), UsageError) << text;
  }
}

}  // namespace
}  // namespace syncopate
