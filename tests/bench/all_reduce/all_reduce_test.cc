// Tests the parts of the all-reduce benchmark that need no other program.
#include "bench/all_reduce/all_reduce.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/all_reduce/all_reduce_sides.h"
#include "bench/harness/bench_commands.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

TEST(SizeText, CountsInPowersOf1024) {
  EXPECT_EQ(parse_size_bytes("4096"), 4096);
  EXPECT_EQ(parse_size_bytes("64K"), 65'536);
  EXPECT_EQ(parse_size_bytes("16M"), 16 << 20);
  EXPECT_EQ(parse_size_bytes("4G"), std::int64_t{4} << 30);
}

TEST(SizeText, ThatIsNoNumberOfWholeFloatsIsAUsageError) {
  for (const char* text : {"", "K", "0", "-4", "6", "4k", "4KB", "1.5M", "5G",
                           "99999999999999999999", "9223372036854775807G"}) {
    EXPECT_THROW(parse_size_bytes(text), UsageError) << text;
  }
}

// In an all-reduce of two ranks, each rank sends half of the tensor twice, which is as many bytes
// as the tensor has.
TEST(BusBandwidth, CountsWhatCrossesEachRanksLink) {
  EXPECT_DOUBLE_EQ(bus_factor(2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(4), 1.5);
}

TEST(AllReduceSides, AreOursAloneWhenNoPeerIsWanted) {
  const AllReduceSides found =
      find_all_reduce_sides({.transports = {"shm", "tcp"}, .peers = {"none"}}, 4096);
  ASSERT_EQ(found.sides.size(), 2U);
  EXPECT_TRUE(found.sides[0].ours);
  EXPECT_FALSE(found.sides[0].tcp);
  EXPECT_TRUE(found.sides[1].tcp);
  EXPECT_TRUE(found.absent.empty());
}

TEST(AllReduceFlags, WithUnknownNamesAreAUsageError) {
  for (const char* flag : {"--transport", "--peers"}) {
    FlagSet flags("syncopate-bench all-reduce", "");
    const Command command = declare_all_reduce(flags, Environment());
    EXPECT_THROW((void)flags.parse(std::vector<std::string>{flag, "nccl"}), UsageError) << flag;
  }
}

// The folder of this test program has no program that runs the all-reduce of MPI for comparison, as
// in a build without MPI.
TEST(AllReduceSides, NameWhatIsMissingAndRefuseWhatWasRequested) {
  const AllReduceSides found = find_all_reduce_sides({}, 4096);
  EXPECT_EQ(found.sides.size(), 2U);
  EXPECT_EQ(found.absent.size(), 2U);  // through shared memory and over TCP
  EXPECT_THROW(find_all_reduce_sides({.peers = {"mpi"}}, 4096), UsageError);
  EXPECT_THROW(find_all_reduce_sides({.peers = {"mpi-tcp"}}, 4096), UsageError);
}

}  // namespace
}  // namespace syncopate::bench
