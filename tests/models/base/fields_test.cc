#include "models/base/fields.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(Fields, AreNamedValues) {
  const auto fields = parse_fields("worker=2,at=30s,empty=,twice=a=b");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->size(), 4U);
  EXPECT_EQ(fields->at("worker"), "2");
  EXPECT_EQ(fields->at("at"), "30s");
  EXPECT_EQ(fields->at("empty"), "");
  EXPECT_EQ(fields->at("twice"), "a=b");
  EXPECT_TRUE(parse_fields("")->empty());
}

TEST(Fields, ThatAreNoneAreRefused) {
  for (const char* text : {"worker", "worker=2,", ",", ",worker=2", "worker=2,worker=3"}) {
    EXPECT_FALSE(parse_fields(text)) << text;
  }
}

}  // namespace
}  // namespace syncopate
