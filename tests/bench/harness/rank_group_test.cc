// Tests groups of ranks. The ranks are threads, which works because RankGroup does not require
// processes.
#include "bench/harness/rank_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string unique_name(const std::string& test) {
  return "syncopate-test-" + std::to_string(::getpid()) + "-" + test;
}

// Runs `body` for each rank of a group. Returns each rank's exception text; "" for a rank that
// threw none.
std::vector<std::string> on_all_ranks(const std::string& name, int size,
                                      const std::function<void(RankGroup&)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    threads.reserve(errors.size());
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          RankGroup group(rank, size, unique_name(name), Deadline::after(seconds(10)));
          body(group);
        } catch (const Error& error) {
          errors[static_cast<std::size_t>(rank)] = error.what();
        }
      });
    }
  }
  return errors;
}

const std::vector<std::string> kNoErrors3 = {"", "", ""};

TEST(RankGroup, BroadcastsTheTextOfRankZero) {
  std::vector<std::string> received(3);
  EXPECT_EQ(on_all_ranks("share", 3,
                         [&](RankGroup& group) {
                           received[static_cast<std::size_t>(group.rank())] =
                               group.share(group.rank() == 0 ? "port 7" : "");
                         }),
            kNoErrors3);
  EXPECT_EQ(received, (std::vector<std::string>{"port 7", "port 7", "port 7"}));
}

TEST(RankGroup, HoldsRanksAtABarrierUntilAllHaveArrived) {
  constexpr int kRounds = 200;
  std::atomic<int> come = 0;
  std::atomic<int> early = 0;
  EXPECT_EQ(on_all_ranks("barrier", 3,
                         [&](RankGroup& group) {
                           for (int round = 1; round <= kRounds; ++round) {
                             come.fetch_add(1);
                             group.barrier(Deadline::after(seconds(10)));
                             if (come.load() < 3 * round) early.fetch_add(1);
                           }
                         }),
            kNoErrors3);
  EXPECT_EQ(early.load(), 0);
}

TEST(RankGroup, ShowsEveryRanksRowToRankZero) {
  double sum = 0.0;
  EXPECT_EQ(on_all_ranks("rows", 3,
                         [&](RankGroup& group) {
                           group.row(group.rank())[7] = group.rank() + 1;
                           group.barrier(Deadline::after(seconds(10)));
                           if (group.rank() != 0) return;
                           for (int rank = 0; rank < 3; ++rank) sum += group.row(rank)[7];
                         }),
            kNoErrors3);
  EXPECT_EQ(sum, 6.0);
}

TEST(RankGroup, EndsTheBarrierThatWaitsForAFailedRank) {
  const std::vector<std::string> errors = on_all_ranks("fail", 2, [](RankGroup& group) {
    if (group.rank() == 1) return group.fail();
    group.barrier(Deadline::after(seconds(10)));
  });
  EXPECT_TRUE(contains(errors[0], "another rank of the group failed"));
}

TEST(RankGroup, GivesUpABarrierAtTheDeadline) {
  const std::vector<std::string> errors = on_all_ranks("late", 2, [](RankGroup& group) {
    if (group.rank() == 0) group.barrier(Deadline::after(milliseconds(20)));
  });
  EXPECT_TRUE(contains(errors[0], "in time"));
}

// A barrier keeps rank 0 alive, so the other ranks observe the end of the input and not the end of
// rank 0.
TEST(RankGroup, PassesCommandsOnUntilTheInputEnds) {
  std::istringstream input("run 4096 5\n\nrun 8192 5\n");
  std::streambuf* const standard = std::cin.rdbuf(input.rdbuf());
  std::vector<std::vector<std::string>> received(3);
  EXPECT_EQ(on_all_ranks("commands", 3,
                         [&](RankGroup& group) {
                           while (const auto command = group.next_command()) {
                             received[static_cast<std::size_t>(group.rank())].push_back(*command);
                           }
                           group.barrier(Deadline::after(seconds(10)));
                         }),
            kNoErrors3);
  std::cin.rdbuf(standard);
  const std::vector<std::string> commands = {"run 4096 5", "run 8192 5"};
  EXPECT_EQ(received, (std::vector<std::vector<std::string>>{commands, commands, commands}));
}

TEST(RankGroup, HasNoMoreCommandsWhenRankZeroHasEnded) {
  std::optional<std::string> command = "none yet";
  EXPECT_EQ(on_all_ranks("gone", 2,
                         [&](RankGroup& group) {
                           if (group.rank() == 1) command = group.next_command();
                         }),
            (std::vector<std::string>{"", ""}));
  EXPECT_EQ(command, std::nullopt);
}

TEST(RankGroup, ReportsHowManyRanksArrivedWhenOneDidNot) {
  EXPECT_TRUE(contains(message_of<PeerError>([&] {
                         const RankGroup group(0, 2, unique_name("missing"),
                                               Deadline::after(milliseconds(20)));
                       }),
                       "1 of 2"));
}

TEST(RankGroup, WithoutARankZeroIsGivenUpAtTheDeadline) {
  EXPECT_THROW(RankGroup(1, 2, unique_name("no-rank-0"), Deadline::after(milliseconds(20))),
               PeerError);
}

}  // namespace
}  // namespace syncopate::bench
