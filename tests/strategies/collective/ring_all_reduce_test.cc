// Tests the ring all-reduce over TCP: its partition into chunks, the order of its stream, and its
// errors when ranks disagree or are lost.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/tensor/sums.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/ring_all_reduce.h"
#include "tests/strategies/collective/contract.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

using std::chrono::seconds;
using Ranks = std::vector<std::unique_ptr<Collective>>;

Ranks make_ranks(int size, seconds timeout = seconds(60)) {
  CollectiveOptions options;
  options.num_local_ranks = size;
  options.block_elements = 1000;
  options.timeout = timeout;
  return make_tcp_ring_collectives(options);
}

// Returns the errors that the ranks throw; "" for a rank that throws none.
std::vector<std::string> errors_of(Ranks& ranks,
                                   const std::function<void(std::unique_ptr<Collective>&)>& main) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        main(ranks[r]);
      } catch (const PeerError& error) {
        errors[r] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

TEST(RingPartition, DividesATensorIntoSegmentsOfChunksOfTheArena) {
  // The tensor has the last 4 elements of chunk 1, chunk 2, and the first 6 elements of chunk 3:
  // two segments for two ranks.
  const RingPartition partition(2 * kBlockElements - 4, kBlockElements + 10, 2);
  EXPECT_EQ(partition.num_segments(), 2);
  EXPECT_EQ(partition.chunk(0, 1).begin, 0);
  EXPECT_EQ(partition.chunk(0, 1).count, 4);
  EXPECT_EQ(partition.chunk(0, 0).begin, 4);
  EXPECT_EQ(partition.chunk(0, 0).count, kBlockElements);
  EXPECT_EQ(partition.chunk(1, -1).begin, kBlockElements + 4);
  EXPECT_EQ(partition.chunk(1, -1).count, 6);
  EXPECT_EQ(partition.chunk(1, 0).count, 0);
}

TEST(StreamOrder, ContainsEveryStepOfEverySegmentOnceAndAfterTheStepBeforeIt) {
  for (const std::int64_t segments : {0, 1, 2, 3, 4, 5, 9, 100}) {
    for (const int steps : {2, 4, 6, 12}) {
      std::map<std::pair<std::int64_t, int>, int> seen;
      for (StreamOrder order(segments, steps); !order.at_end(); order.advance()) {
        const auto [segment, step] = order.position();
        ASSERT_TRUE(segment >= 0 && segment < segments && step < steps);
        ++seen[{segment, step}];
        if (step == 0) continue;
        EXPECT_EQ((seen[{segment, step - 1}]), 1)
            << segments << " segments, segment " << segment << ", step " << step;
        EXPECT_TRUE(order.is_past({segment, step - 1}));
        EXPECT_FALSE(order.is_past({segment, step}));
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(segments * steps));
    }
  }
}

TEST(RingAllReduce, LeavesTheTensorOfASingleRankUnchanged) {
  const Ranks ranks = make_ranks(1);
  const Tensor tensor = make_host_tensor({3}, DType::kF32);
  tensor.f32()[1] = 5.0F;
  ranks[0]->wait(ranks[0]->all_reduce(tensor, 0));
  EXPECT_EQ(tensor.f32()[1], 5.0F);
}

TEST(RingAllReduce, NamesTheRanksThatDisagreeAboutWhatTheySum) {
  Ranks ranks = make_ranks(3);
  const auto errors = errors_of(ranks, [](std::unique_ptr<Collective>& rank) {
    const Tensor tensor = make_host_tensor({rank->rank() == 1 ? 41 : 40}, DType::kF32);
    rank->wait(rank->all_reduce(tensor, 0));
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(contains(error, "rank 1 ") && contains(error, "41 f32") &&
                contains(error, "40 f32"))
        << error;
  }
}

TEST(RingAllReduce, NamesTheRanksThatDisagreeAboutWhatTheyGather) {
  Ranks ranks = make_ranks(2);
  const auto errors = errors_of(ranks, [](std::unique_ptr<Collective>& rank) {
    std::vector<std::byte> all(rank->rank() == 1 ? 6 : 8);
    rank->all_gather(std::span(all).first(all.size() / 2), all);
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(contains(error, "4 bytes") && contains(error, "3 bytes")) << error;
  }
}

TEST(RingAllReduce, NamesTheRankWhoseConnectionClosed) {
  for (const bool small : {false, true}) {
    Ranks ranks = make_ranks(4);
    const auto errors = errors_of(ranks, [&](std::unique_ptr<Collective>& rank) {
      if (rank->rank() == 2) {
        rank.reset();
        return;
      }
      std::vector<std::byte> all(4);
      for (int i = 0; i < 10; ++i) {
        if (small) {
          rank->all_gather(std::span(all).first(1), all);
        } else {
          rank->wait(rank->all_reduce(rank->block(), 0));
        }
      }
    });
    for (const std::size_t r : {0, 1, 3}) {
      EXPECT_TRUE(contains(errors[r], "rank 2")) << "rank " << r << ": " << errors[r];
    }
  }
}

TEST(RingAllReduce, PassesTheReasonOfAnAbortToAllRanks) {
  Ranks ranks = make_ranks(3);
  ranks[1]->abort("worker 1 ran out of disk");
  const auto errors = errors_of(ranks, [](std::unique_ptr<Collective>& rank) {
    for (int i = 0; i < 10; ++i) rank->wait(rank->all_reduce(rank->block(), 0));
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "worker 1 ran out of disk");
}

TEST(RingAllReduce, CanBeDestroyedWithWorkInProgress) {
  const Ranks ranks = make_ranks(3);
  const Tensor tensor = make_host_tensor({1'000'000}, DType::kF32);
  (void)ranks[0]->all_reduce(tensor, 0);
  const Tensor other = make_host_tensor({1'000'000}, DType::kF32);
  (void)ranks[1]->all_reduce(other, 0);
}

TEST(RingAllReduce, RefusesOtherTypesAndSizes) {
  const Ranks ranks = make_ranks(1);
  EXPECT_THROW((void)ranks[0]->all_reduce(make_host_tensor({3}, DType::kI32), 0), ShapeError);
  std::vector<std::byte> bytes(3);
  EXPECT_THROW(ranks[0]->all_gather(std::span(bytes).first(1), bytes), ShapeError);
  EXPECT_THROW(ranks[0]->broadcast(bytes, 1), ShapeError);
}

}  // namespace
}  // namespace syncopate
