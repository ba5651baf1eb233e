// Tests a LanePool whose threads do not all start. A test program of its own, because it limits the
// address space of the whole process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "models/backend/cpu/lanes.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

// Returns the address space in use by this process, in bytes.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(LanePool, EndsItsLanesWhenTheSystemRefusesToStartMore) {
  rlimit kept{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &kept), 0);
  // A limit of 256 MiB leaves room for the stacks of some lanes, but not of a thousand with 8 MiB
  // each.
  const rlimit tight = {address_space() + (rlim_t{256} << 20), kept.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  std::string message;
  try {
    const LanePool lanes(1024);
  } catch (const UsageError& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &kept), 0);
  EXPECT_TRUE(contains(message, "try fewer"));
}

}  // namespace
}  // namespace syncopate
