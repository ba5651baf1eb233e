#include "models/base/flag_values.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

TEST(ParseSeconds, ReadsATimeWithOrWithoutAUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("250us", "--link-delay"), 250e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5ms", "--link-delay"), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("2", "--link-delay"), 2.0);
}

TEST(ParseSeconds, RefusesATextThatIsNoTime) {
  for (const char* text : {"", "ms", "1m", "-1ms", "nan", "1e30s"}) {
    EXPECT_THROW(parse_seconds(text, "--link-delay"), UsageError) << text;
  }
}

TEST(ParseRate, ReadsBitsAndBytesPerSecond) {
  EXPECT_DOUBLE_EQ(parse_rate("1gbit", "--link-rate"), 125e6);
  EXPECT_DOUBLE_EQ(parse_rate("50mb", "--link-rate"), 50e6);
}

TEST(ParseRate, RefusesATextThatIsNoRate) {
  for (const char* text : {"", "1", "0gbit", "gbit", "1bit"}) {
    EXPECT_THROW(parse_rate(text, "--link-rate"), UsageError) << text;
  }
}

TEST(ParseFields, ReadsNamedValues) {
  const auto fields = parse_fields("worker=2,at=30s,empty=,twice=a=b");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->size(), 4U);
  EXPECT_EQ(fields->at("worker"), "2");
  EXPECT_EQ(fields->at("at"), "30s");
  EXPECT_EQ(fields->at("empty"), "");
  EXPECT_EQ(fields->at("twice"), "a=b");
  EXPECT_TRUE(parse_fields("")->empty());
}

TEST(ParseFields, RefusesAMissingValueAndARepeatedName) {
  for (const char* text : {"worker", "worker=2,", ",", ",worker=2", "worker=2,worker=3"}) {
    EXPECT_FALSE(parse_fields(text)) << text;
  }
}

TEST(ShortestText, ReadsBackAsTheSameNumber) {
  EXPECT_EQ(shortest_text(0.001), "0.001");
  EXPECT_EQ(shortest_text(0.1F), "0.1");
  EXPECT_EQ(shortest_text(1e300), "1e+300");
}

}  // namespace
}  // namespace syncopate
