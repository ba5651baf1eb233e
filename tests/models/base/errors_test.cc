#include "models/base/errors.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

TEST(Check, DoesNotThrowForATrueCondition) { EXPECT_NO_THROW(check(true, "two and two are four")); }

TEST(Check, NamesTheFileOfTheCallerAndTheInvariant) {
  EXPECT_TRUE(contains(message_of<InternalError>([&] { check(false, "buckets cover the arena"); }),
                       "errors_test.cc", "buckets cover the arena"));
}

TEST(DescribeErrno, NamesTheActionThePathAndTheReason) {
  EXPECT_EQ(describe_errno("open", "/x/y", ENOENT), "open /x/y: No such file or directory");
}

TEST(OutOfMemoryError, IsADeviceError) {
  EXPECT_THROW(throw OutOfMemoryError("host"), DeviceError);
}

}  // namespace
}  // namespace syncopate
