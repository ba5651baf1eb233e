#include "models/base/errors.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace syncopate {
namespace {

TEST(Check, DoesNotThrowForATrueCondition) { EXPECT_NO_THROW(check(true, "two and two are four")); }

TEST(Check, NamesTheFileOfTheCallerAndTheInvariant) {
  try {
    check(false, "buckets cover the arena");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("errors_test.cc"), std::string::npos) << message;
    EXPECT_NE(message.find("buckets cover the arena"), std::string::npos) << message;
  }
}

TEST(DescribeErrno, NamesTheActionThePathAndTheReason) {
  EXPECT_EQ(describe_errno("open", "/x/y", ENOENT), "open /x/y: No such file or directory");
}

TEST(OutOfMemoryError, IsADeviceError) {
  EXPECT_THROW(throw OutOfMemoryError("host"), DeviceError);
}

}  // namespace
}  // namespace syncopate
