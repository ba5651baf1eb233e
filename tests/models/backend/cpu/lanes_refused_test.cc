// A program of its own: for a moment the process may have no more memory than it has.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "models/backend/cpu/lanes.h"
#include "models/base/errors.h"

namespace syncopate {
namespace {

// Address space in use, in bytes.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(LanePool, EndsTheLanesItHasWhenTheSystemStartsNoMore) {
  rlimit kept{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &kept), 0);
  // Room for the stacks of some lanes, not for a thousand of 8 MiB.
  const rlimit tight = {address_space() + (rlim_t{256} << 20), kept.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::string message;
  try {
    const LanePool lanes(1024);
  } catch (const UsageError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &kept), 0);
  EXPECT_NE(message.find("try fewer"), std::string::npos) << message;
}

}  // namespace
}  // namespace syncopate
