#include "models/base/errors.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace syncopate {
namespace {

TEST(Check, LetsWhatHoldsPass) { EXPECT_NO_THROW(check(true, "two and two are four")); }

TEST(Check, NamesTheCallersFileAndTheInvariant) {
  try {
    check(false, "buckets cover the arena");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("errors_test.cc"), std::string::npos) << message;
    EXPECT_NE(message.find("buckets cover the arena"), std::string::npos) << message;
  }
}

TEST(DescribeErrno, SaysWhatWasTriedOnWhatAndWhy) {
  EXPECT_EQ(describe_errno("open", "/x/y", ENOENT), "open /x/y: No such file or directory");
}

TEST(Errors, OutOfMemoryIsADeviceError) {
  EXPECT_THROW(throw OutOfMemoryError("host"), DeviceError);
}

}  // namespace
}  // namespace syncopate
