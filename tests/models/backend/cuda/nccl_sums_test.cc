// Tests sums of gradients by NCCL, with a fake NCCL and an emulated runtime: the waits between
// streams and replicas, and that every wait ends.
#include "models/backend/cuda/nccl_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/backend/cuda/device.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "tests/models/backend/cuda/emulated_journal.h"
#include "tests/models/backend/cuda/fake_nccl.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array kBuckets = {Bucket{64, 192}, Bucket{0, 64}};
constexpr std::int64_t kElements = 192;

// Holds the communicator id of rank 0 for replicas that are threads.
class SharedId {
 public:
  DeviceCollective::Broadcast as_seen_by(int rank) {
    return [this, rank](std::span<std::byte> bytes) {
      const auto shared = std::as_writable_bytes(std::span(&id_, 1));
      if (rank == 0) {
        std::ranges::copy(bytes, shared.begin());
        is_made_.set_value();
      } else {
        can_be_read_.wait();
        std::ranges::copy(shared, bytes.begin());
      }
    };
  }

 private:
  ncclUniqueId id_{};
  std::promise<void> is_made_;
  std::shared_future<void> can_be_read_ = is_made_.get_future().share();
};

class NcclSums : public testing::Test {
 protected:
  void SetUp() override { take_calls(); }
  void TearDown() override {
    FakeNcclFaults& faults = fake_nccl_faults();
    faults.id_fails = false;
    faults.init_error = ncclSuccess;
    faults.polls_to_connect = 0;
    faults.async_error = ncclSuccess;
    faults.sums_never_end = false;
    faults.finalize_never_ends = false;
    emulated_device_is_stuck() = false;
  }

  static std::unique_ptr<BucketSums> make(int rank, int size,
                                          std::chrono::nanoseconds timeout = seconds(60)) {
    return make_nccl_sums(
        {.rank = rank, .size = size, .device = {DeviceKind::kCuda, rank}, .timeout = timeout},
        fake_nccl(), milliseconds(1));
  }
  // Returns the sums of a job with only one rank, already connected.
  std::unique_ptr<BucketSums> make_joined(std::chrono::nanoseconds timeout = seconds(60)) {
    auto sums = make(0, 1, timeout);
    sums->join([](std::span<std::byte>) {});
    sums->attach(gradients_.data(), kBuckets);
    return sums;
  }
  void start_all(BucketSums& sums) {
    for (BucketId b = 0; b < static_cast<BucketId>(kBuckets.size()); ++b) {
      sums.start(b, compute_.get());
    }
  }
  // Polls `sums` until check() throws, and returns the reason.
  static std::string reason_of(BucketSums& sums) {
    const Deadline deadline = Deadline::after(seconds(60));
    while (!deadline.passed()) {
      try {
        sums.check();
      } catch (const PeerError& error) {
        return error.what();
      }
      std::this_thread::yield();
    }
    return "nothing within a minute";
  }
  static std::vector<std::string> names_of(const std::vector<EmulatedCall>& calls) {
    std::vector<std::string> names;
    names.reserve(calls.size());
    for (const EmulatedCall& call : calls) names.push_back(call.what);
    return names;
  }

  std::vector<float> gradients_ = std::vector<float>(kElements, 1.0F);
  Stream compute_ = make_stream();
};

TEST_F(NcclSums, ReducesABucketBehindItsBackwardAndUpdatesBehindAllReductions) {
  const auto sums = make_joined();
  take_calls();
  start_all(*sums);
  sums->finish(compute_.get());
  const std::vector<EmulatedCall> calls = take_calls();
  const std::vector<std::string> in_order{"record", "wait",       "all-reduce", "record",
                                          "wait",   "all-reduce", "record",     "wait"};
  ASSERT_EQ(names_of(calls), in_order);
  const void* const side = calls[2].stream;
  EXPECT_NE(side, compute_.get());
  for (const std::size_t first : {0U, 3U}) {  // the first element of each bucket
    EXPECT_EQ(calls[first].stream, compute_.get());
    EXPECT_EQ(calls[first + 1].stream, side);
    EXPECT_EQ(calls[first + 1].event, calls[first].event);
    EXPECT_EQ(calls[first + 2].stream, side);
  }
  EXPECT_EQ(calls[6].stream, side);
  EXPECT_EQ(calls[7].stream, compute_.get());
  EXPECT_EQ(calls[7].event, calls[6].event);
}

// A set NCCL_COMM_BLOCKING overrides the program's request, and a call would then not return while
// a peer is lost.
TEST_F(NcclSums, RefusesAnEnvironmentThatMakesCallsBlock) {
  ASSERT_EQ(setenv("NCCL_COMM_BLOCKING", "1", 1), 0);
  const auto sums = make(0, 1);
  EXPECT_THROW(sums->join([](std::span<std::byte>) {}), UsageError);
  unsetenv("NCCL_COMM_BLOCKING");
  EXPECT_TRUE(take_calls().empty());
}

TEST_F(NcclSums, ReducesEachBucketFromItsFirstToItsLastElement) {
  const auto sums = make_joined();
  take_calls();
  start_all(*sums);
  std::vector<EmulatedCall> reductions = take_calls();
  std::erase_if(reductions, [](const EmulatedCall& call) { return call.what != "all-reduce"; });
  ASSERT_EQ(reductions.size(), 2U);
  EXPECT_EQ(reductions[0].memory, gradients_.data() + 64);
  EXPECT_EQ(reductions[0].count, 128U);
  EXPECT_EQ(reductions[1].memory, gradients_.data());
  EXPECT_EQ(reductions[1].count, 64U);
}

TEST_F(NcclSums, AddsWhatTheReplicasHave) {
  constexpr int kRanks = 3;
  SharedId id;
  std::vector<std::vector<float>> gradients;
  gradients.reserve(kRanks);
  for (int r = 0; r < kRanks; ++r) gradients.emplace_back(kElements, static_cast<float>(r + 1));
  std::vector<std::jthread> replicas;
  replicas.reserve(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    replicas.emplace_back([&, r] {
      const auto sums = make(r, kRanks);
      sums->join(id.as_seen_by(r));
      sums->attach(gradients[static_cast<std::size_t>(r)].data(), kBuckets);
      const Stream compute = make_stream();
      for (int step = 0; step < 2; ++step) {
        for (BucketId b = 0; b < 2; ++b) sums->start(b, compute.get());
        sums->finish(compute.get());
      }
      cudaStreamSynchronize(compute.get());
      sums->leave();
    });
  }
  replicas.clear();
  // The first sum is 1 + 2 + 3; the second sum adds three of these, which gives 18.
  for (const auto& found : gradients) EXPECT_EQ(found, std::vector<float>(kElements, 18.0F));
}

// The kernel of a sum waits for a peer that has connected and does not come to the sum.
TEST_F(NcclSums, EndAWaitForTheDeviceWithTheReasonOfALostPeer) {
  SharedId id;
  const auto lost = make(1, 2);
  std::jthread meeting([&] { lost->join(id.as_seen_by(1)); });
  const auto sums = make(0, 2);
  sums->join(id.as_seen_by(0));
  meeting.join();
  sums->attach(gradients_.data(), kBuckets);
  start_all(*sums);
  sums->finish(compute_.get());
  EXPECT_NO_THROW(sums->check());
  const Deadline deadline = Deadline::after(seconds(30));
  const std::jthread watcher([&] { sums->abort("rank 1 (host b) died in step 3"); });
  cudaStreamSynchronize(compute_.get());
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(reason_of(*sums), "rank 1 (host b) died in step 3");
}

TEST_F(NcclSums, PollsUntilAllAreConnected) {
  fake_nccl_faults().polls_to_connect = 5;
  const auto sums = make(0, 1);
  sums->join([](std::span<std::byte>) {});
  EXPECT_NO_THROW(sums->check());
}

// An error that no peer can have caused is reported at once as this rank's own error.
TEST_F(NcclSums, DistinguishLocalFailuresFromThoseOfAPeer) {
  const auto expect_own_error = [](const std::unique_ptr<BucketSums>& sums) {
    EXPECT_TRUE(contains(message_of<DeviceError>([&] { sums->join([](std::span<std::byte>) {}); }),
                         "unhandled system error", "replica 0 (cuda:0)", "--collective ring"));
  };
  fake_nccl_faults().id_fails = true;
  expect_own_error(make(0, 2));
  fake_nccl_faults().id_fails = false;
  fake_nccl_faults().init_error = ncclSystemError;
  expect_own_error(make(0, 2));
}

// When init_rank() fails, it has begun to contact the peers, so a peer that died since may be the
// cause.
TEST_F(NcclSums, AttributeFailuresWhileConnectingToAPeer) {
  const auto error_of = [](int rank, ncclResult_t code) -> std::string {
    fake_nccl_faults().init_error = code;
    const auto sums = make(rank, 2);
    try {
      sums->join([](std::span<std::byte>) {});
    } catch (const PeerError& error) {
      return std::string("a peer's: ") + error.what();
    } catch (const DeviceError&) {
      return "its own";
    }
    return "none";
  };
  EXPECT_EQ(error_of(0, ncclSystemError), "its own") << "rank 0 connects to no other rank";
  EXPECT_EQ(error_of(1, ncclUnhandledCudaError), "its own");
  for (const auto& [rank, code] :
       {std::pair{0, ncclRemoteError}, {1, ncclRemoteError}, {1, ncclSystemError}}) {
    const std::string text = error_of(rank, code);
    EXPECT_TRUE(text.starts_with("a peer's: ")) << rank << ": " << text;
    EXPECT_TRUE(contains(text, "waited for all 2 replicas to meet"));
  }
}

TEST_F(NcclSums, GiveUpOnAReplicaThatNeverJoins) {
  const auto sums = make(0, 2, milliseconds(20));
  EXPECT_TRUE(contains(message_of<PeerError>([&] { sums->join([](std::span<std::byte>) {}); }),
                       "waited 0.02 s for all 2 replicas to meet", "--collective ring"));
  EXPECT_EQ(names_of(take_calls()), (std::vector<std::string>{"init", "abort"}));
}

TEST_F(NcclSums, GiveUpASumThatDoesNotBegin) {
  const auto sums = make_joined(milliseconds(500));
  fake_nccl_faults().sums_never_end = true;
  EXPECT_THROW(sums->start(0, compute_.get()), PeerError);
  EXPECT_TRUE(contains(reason_of(*sums), "the sum of bucket 0"));
  EXPECT_EQ(take_calls().back().what, "abort");
}

TEST_F(NcclSums, GiveUpASumThatTheDeviceNeverEnds) {
  const auto sums = make_joined(milliseconds(500));
  emulated_device_is_stuck() = true;
  start_all(*sums);
  sums->finish(compute_.get());
  const std::string reason = reason_of(*sums);
  EXPECT_TRUE(contains(reason, "the sums of a step", "--collective ring"));
}

TEST_F(NcclSums, DoNotTreatAPauseAsAStall) {
  const auto sums = make_joined(milliseconds(500));
  start_all(*sums);
  sums->finish(compute_.get());
  // After the sums have ended, check() does not throw, even later than the deadline of a stall.
  const Deadline deadline = Deadline::after(milliseconds(1000));
  while (!deadline.passed()) EXPECT_NO_THROW(sums->check());
}

TEST_F(NcclSums, AbortTheCommunicatorWhenAPeerIsLost) {
  const auto sums = make_joined();
  start_all(*sums);
  sums->finish(compute_.get());
  fake_nccl_faults().async_error = ncclRemoteError;
  const std::string reason = reason_of(*sums);
  EXPECT_TRUE(contains(reason, "remote process exited: the fake was told so", "the sums of a step",
                       "--collective ring"));
  EXPECT_THROW(sums->start(0, compute_.get()), PeerError);
  sums->detach();
  EXPECT_EQ(take_calls().back().what, "abort");
}

TEST_F(NcclSums, EndAWaitForAPeerThatTheMembershipReportsAsLost) {
  const auto sums = make_joined();
  fake_nccl_faults().sums_never_end = true;
  std::jthread watcher([&] { sums->abort("rank 1 (host b) died in step 3"); });
  EXPECT_EQ(message_of<PeerError>([&] {
              // The sum may begin before or after another thread calls abort() with the reason; in
              // both cases the sum throws an error with this reason.
              sums->start(0, compute_.get());
            }),
            "rank 1 (host b) died in step 3");
}

// The kernels of a sum spin until the peers come, so the wait for the device ends only with the
// abort.
TEST_F(NcclSums, AbortTheCommunicatorWhileTheReplicaWaitsForTheDevice) {
  const auto sums = make_joined();
  start_all(*sums);
  sums->finish(compute_.get());
  take_calls();
  sums->abort("rank 1 (host b) died in step 3");
  const Deadline deadline = Deadline::after(seconds(60));
  std::vector<EmulatedCall> calls;
  while (calls.empty() && !deadline.passed()) {
    std::this_thread::yield();
    calls = take_calls();
  }
  EXPECT_EQ(names_of(calls), (std::vector<std::string>{"abort"}));
  EXPECT_EQ(reason_of(*sums), "rank 1 (host b) died in step 3");
}

TEST_F(NcclSums, LeaveBeforeTheyAreDestroyed) {
  auto sums = make_joined();
  take_calls();
  sums->detach();
  sums->leave();
  sums.reset();
  EXPECT_EQ(names_of(take_calls()), (std::vector<std::string>{"finalize", "destroy"}));
}

TEST_F(NcclSums, AbortWhenNoPeerIsLeft) {
  auto sums = make_joined();
  take_calls();
  sums.reset();
  EXPECT_EQ(names_of(take_calls()), (std::vector<std::string>{"abort"}));
}

}  // namespace
}  // namespace syncopate::cuda
