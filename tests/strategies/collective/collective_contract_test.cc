// Tests the contract of a Collective, for every collective that can run in one process.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "strategies/collective/collectives.h"
#include "tests/strategies/collective/contract.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Kind {
  std::string name;  // the name of the test case
  std::string collective;
  Transport transport = Transport::kAuto;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

class EveryCollective : public testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  int size() const { return std::get<1>(GetParam()); }

  std::vector<std::unique_ptr<Collective>> make(milliseconds timeout = seconds(60),
                                                const PeerProgress& progress = {}) const {
    CollectiveOptions options;
    options.name = std::get<0>(GetParam()).collective;
    options.transport = std::get<0>(GetParam()).transport;
    options.num_local_ranks = size();
    options.block_elements = 100'003;
    options.timeout = timeout;
    options.progress = progress;
    return make_collectives(options);
  }

  // Calls rank_main for every rank on a thread of its own. If a rank throws, its collective aborts
  // the other ranks.
  static void run(const std::vector<std::unique_ptr<Collective>>& ranks,
                  const std::function<std::string(Collective&)>& rank_main) {
    std::vector<std::string> errors(ranks.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        threads.emplace_back([&, r] {
          try {
            errors[r] = rank_main(*ranks[r]);
          } catch (const std::exception& error) {
            errors[r] = std::string("threw ") + error.what();
          }
          if (errors[r].empty()) return;
          for (const auto& rank : ranks) rank->abort("rank " + std::to_string(r) + " complained");
        });
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
  }

  // Returns the errors that all ranks but the last throw.
  static std::vector<std::string> errors_of_others(
      const std::vector<std::unique_ptr<Collective>>& ranks,
      const std::function<void(Collective&)>& rank_main) {
    std::vector<std::string> errors(ranks.size() - 1, "nothing was thrown");
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r + 1 < ranks.size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          rank_main(*ranks[r]);
        } catch (const PeerError& error) {
          errors[r] = error.what();
        }
      });
    }
    threads.clear();
    return errors;
  }
};

TEST_P(EveryCollective, NumbersItsRanks) {
  const auto ranks = make();
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) {
    const Collective& rank = *ranks[static_cast<std::size_t>(r)];
    EXPECT_EQ(rank.rank(), r);
    EXPECT_EQ(rank.size(), size());
    EXPECT_EQ(rank.block().num_elements(), 100'003);
  }
}

TEST_P(EveryCollective, SumsInTheOneOrderOfAdditions) {
  run(make(), [](Collective& rank) { return check_sums(rank, {}); });
}

TEST_P(EveryCollective, RunsSeveralAllReducesConcurrently) {
  run(make(), [](Collective& rank) { return check_several_under_way(rank, {}); });
}

TEST_P(EveryCollective, SumsManySmallBuckets) {
  run(make(), [](Collective& rank) { return check_many_small(rank, {}); });
}

TEST_P(EveryCollective, GathersTheBytesOfEveryRank) {
  run(make(), [](Collective& rank) { return check_all_gather(rank); });
}

TEST_P(EveryCollective, BroadcastsFromEveryRoot) {
  run(make(), [](Collective& rank) { return check_broadcast(rank); });
}

TEST_P(EveryCollective, GathersAndBroadcastsBesideAnAllReduce) {
  run(make(), [](Collective& rank) { return check_small_beside_large(rank, {}); });
}

// The last rank begins only when the others wait to start the 257th all-reduce. They then reuse
// slots of the queue in which earlier pieces are not done yet.
TEST_P(EveryCollective, AcceptsMoreAllReducesThanMayBeInProgress) {
  constexpr int kAllReduces = 600;
  constexpr int kMayBeUnderWay = 256;
  std::atomic<int> of_first_rank = 0;
  run(make(), [&](Collective& rank) -> std::string {
    const Tensor& block = rank.block();
    for (int i = 0; i < kAllReduces; ++i) block.f32()[i] = static_cast<float>(i);
    const Deadline deadline = Deadline::after(seconds(30));
    while (rank.size() > 1 && rank.rank() == rank.size() - 1 && of_first_rank <= kMayBeUnderWay) {
      if (deadline.passed()) return "the first rank never started its 257th";
      std::this_thread::yield();
    }
    WorkId last = 0;
    for (int i = 0; i < kAllReduces; ++i) {
      if (rank.rank() == 0) ++of_first_rank;
      last = rank.all_reduce(block.rows(i, i + 1), i);
    }
    rank.wait(last);
    for (int i = 0; i < kAllReduces; ++i) {
      if (block.f32()[i] != static_cast<float>(i * rank.size())) {
        return "element " + std::to_string(i) + " is " + std::to_string(block.f32()[i]);
      }
    }
    return "";
  });
}

TEST_P(EveryCollective, CountsTheTimeOfItsAllReduces) {
  run(make(), [](Collective& rank) -> std::string {
    const std::string wrong = check_sum(rank, {}, 300'000, 0, DType::kF32);
    const CommunicationTimes times = rank.times();
    if (rank.size() > 1 && times.under_way_seconds <= 0.0) return "no time was under way";
    // The exposed time, in which the caller waits, may exceed the time of the all-reduce by 1 ms,
    // because the caller wakes a little after the all-reduce ends.
    if (times.exposed_seconds > times.under_way_seconds + 1e-3)
      return "more exposed than under way";
    return wrong;
  });
}

TEST_P(EveryCollective, SendsNoMoreBytesThanARingNeeds) {
  run(make(), [](Collective& rank) -> std::string {
    constexpr std::int64_t kElements = 1 << 20;
    const std::string wrong = check_sum(rank, {}, kElements, 0, DType::kF32);
    const CommunicationTimes times = rank.times();
    if (!times.bytes_sent || rank.size() == 1) return wrong;
    // Each rank of a ring sends 2 (n - 1) / n of the tensor. Chunks of 64 KB do not divide the
    // tensor evenly, and there are headers.
    const double n = rank.size();
    const double least = 2.0 * (n - 1.0) / n * 4.0 * kElements;
    for (const std::int64_t bytes : {*times.bytes_sent, *times.bytes_received}) {
      if (static_cast<double>(bytes) < 0.9 * least || static_cast<double>(bytes) > 1.1 * least) {
        return std::to_string(bytes) + " bytes, expected about " + std::to_string(least);
      }
    }
    return wrong;
  });
}

std::vector<Kind> kinds() { return {{"Local", "local"}, {"TcpRing", "ring", Transport::kTcp}}; }

std::string name_of(const testing::TestParamInfo<std::tuple<Kind, int>>& info) {
  return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryCollective,
                         testing::Combine(testing::ValuesIn(kinds()),
                                          testing::Values(1, 2, 3, 4, 7)),
                         name_of);

class EveryCollectiveWithAbsentRank : public EveryCollective {};

TEST_P(EveryCollectiveWithAbsentRank, WakesAllWaitingRanksWithTheReasonOfAnAbort) {
  for (const bool small : {false, true}) {
    const auto ranks = make();
    std::latch waiting(size() - 1);
    std::jthread aborter([&] {
      waiting.wait();
      for (const auto& rank : ranks) rank->abort("worker 3 on node7 died");
    });
    const auto errors = errors_of_others(ranks, [&](Collective& rank) {
      waiting.count_down();
      if (small) {
        std::vector<std::byte> all(static_cast<std::size_t>(size()));
        rank.all_gather(std::span(all).first(1), all);
      } else {
        rank.wait(rank.all_reduce(rank.block(), 0));
      }
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "worker 3 on node7 died");
  }
}

TEST_P(EveryCollectiveWithAbsentRank, ThrowsTheReasonOfAnAbortFromEveryLaterCall) {
  for (const auto& rank : make()) {
    rank->abort("worker 3 died");
    rank->abort("a later reason");
    const Tensor tensor = make_host_tensor({4}, DType::kF32);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size()));
    const std::vector<std::function<void()>> calls = {
        [&] { rank->wait(rank->all_reduce(tensor, 0)); },
        [&] { rank->all_gather(std::span(bytes).first(1), bytes); },
        [&] { rank->broadcast(bytes, 0); }};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(message_of<PeerError>([&] { calls[i](); }), "worker 3 died") << "call " << i;
    }
  }
}

TEST_P(EveryCollectiveWithAbsentRank, NamesTheRankThatDoesNotArrive) {
  const std::string absent = std::to_string(size() - 1);
  for (const bool small : {false, true}) {
    const auto ranks = make(seconds(1));
    const auto errors = errors_of_others(ranks, [&](Collective& rank) {
      if (small) {
        std::vector<std::byte> all(static_cast<std::size_t>(size()));
        rank.all_gather(std::span(all).first(1), all);
      } else {
        rank.wait(rank.all_reduce(rank.block(), 0));
      }
    });
    for (const std::string& error : errors) {
      EXPECT_TRUE(error.find("rank " + absent) != std::string::npos ||
                  error.find("replica " + absent) != std::string::npos)
          << error;
      EXPECT_TRUE(contains(error, "1 s"));
    }
  }
}

// The number of the peers' progress changes whenever a waiting rank looks at it, and the last rank
// comes after more than three timeouts.
TEST_P(EveryCollectiveWithAbsentRank, WaitsLongerThanTheTimeoutForARankThatMakesProgress) {
  std::atomic<std::int64_t> looks = 0;
  const auto ranks = make(milliseconds(40), [&] { return ++looks; });
  run(ranks, [&](Collective& rank) -> std::string {
    const Deadline deadline = Deadline::after(seconds(30));
    while (rank.rank() == size() - 1 && looks < 32 * (size() - 1)) {
      if (deadline.passed()) return "no rank looked for progress";
      std::this_thread::yield();
    }
    return check_all_gather(rank);
  });
}

TEST_P(EveryCollectiveWithAbsentRank, GivesUpARankWithoutProgress) {
  const auto ranks = make(milliseconds(40), [] { return 7; });
  const auto errors = errors_of_others(ranks, [&](Collective& rank) {
    std::vector<std::byte> all(static_cast<std::size_t>(size()));
    rank.all_gather(std::span(all).first(1), all);
  });
  for (const std::string& error : errors) EXPECT_TRUE(contains(error, "0.04 s")) << error;
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryCollectiveWithAbsentRank,
                         testing::Combine(testing::ValuesIn(kinds()), testing::Values(2, 4)),
                         name_of);

}  // namespace
}  // namespace syncopate
