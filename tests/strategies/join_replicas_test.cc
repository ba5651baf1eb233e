// Tests the choice of the place where gradients are summed, as a function of where the replicas
// compute.
#include "strategies/join_replicas.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/errors.h"
#include "strategies/synchronous.h"
#include "tests/strategies/collective/fake_membership.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using Places = std::vector<ReplicaPlace>;

const Places kTwoGpusOfAProcess{{0, "m", "0000:1b"}, {0, "m", "0000:43"}};
const Places kAGpuPerTask{{0, "m", "0000:1b"}, {1, "m", "0000:43"}, {2, "n", "0000:1b"}};
const Places kOneGpuForAll{{0, "m", "0000:1b"}, {0, "m", "0000:1b"}, {0, "m", "0000:1b"}};
const Places kTasksOnOneGpu{{0, "m", "0000:1b"}, {1, "m", "0000:1b"}};
const Places kTwoOnEachGpu{
    {0, "m", "0000:1b"}, {0, "m", "0000:43"}, {0, "m", "0000:1b"}, {0, "m", "0000:43"}};
const Places kOneOnACpu{{0, "m", "0000:1b"}, {1, "n", ""}};
const Places kAlone{{0, "m", "0000:1b"}};

SumPlace place(const std::string& collective, const Places& replicas) {
  return choose_sums(collective, replicas).place;
}

std::string nccl_refusal(const Places& replicas) {
  return message_of<UsageError>([&] { (void)choose_sums("nccl", replicas); });
}

TEST(GradientsOfReplicas, AreSummedByNcclIfEachReplicaHasAGpu) {
  EXPECT_EQ(place("auto", kTwoGpusOfAProcess), SumPlace::kNccl);
  EXPECT_EQ(place("auto", kAGpuPerTask), SumPlace::kNccl);
  EXPECT_EQ(place("nccl", kAGpuPerTask), SumPlace::kNccl);
  EXPECT_EQ(place("nccl", kAlone), SumPlace::kNccl);
}

TEST(GradientsOfReplicas, AreSummedByAKernelIfAllReplicasOfOneProcessShareAGpu) {
  EXPECT_EQ(place("auto", kOneGpuForAll), SumPlace::kOneGpu);
  EXPECT_EQ(place("local", kOneGpuForAll), SumPlace::kOneGpu);
}

TEST(GradientsOfReplicas, AreNotSummedForOneReplica) {
  EXPECT_EQ(place("auto", kAlone), SumPlace::kNowhere);
}

TEST(GradientsOfReplicas, AreSummedOnTheHostIfTasksShareAGpuAndTheReasonIsGiven) {
  for (const Places& replicas : {kTasksOnOneGpu, kTwoOnEachGpu}) {
    const SumChoice choice = choose_sums("auto", replicas);
    EXPECT_EQ(choice.place, SumPlace::kHost);
    EXPECT_TRUE(contains(choice.why_host, "share a GPU (0000:1b)"));
  }
  // For replicas on CPUs the host is the expected place of sums, so why_host, the reason, is empty.
  EXPECT_EQ(choose_sums("auto", kOneOnACpu).why_host, "");
  EXPECT_EQ(place("auto", kOneOnACpu), SumPlace::kHost);
}

TEST(GradientsOfReplicas, AreSummedOnTheHostIfThatIsRequested) {
  for (const char* collective : {"ring", "mpi"}) {
    for (const Places& replicas : {kTwoGpusOfAProcess, kAGpuPerTask, kAlone}) {
      EXPECT_EQ(place(collective, replicas), SumPlace::kHost);
    }
  }
  EXPECT_EQ(place("local", kTwoGpusOfAProcess), SumPlace::kHost);
}

TEST(Nccl, IsRefusedIfReplicasShareAGpu) {
  EXPECT_EQ(nccl_refusal(kTasksOnOneGpu),
            "--collective nccl: replicas 0 and 1 share a GPU (0000:1b), which NCCL refuses; give "
            "each replica a GPU of its own, or choose --collective ring");
  EXPECT_TRUE(contains(nccl_refusal(kOneGpuForAll), "or omit --collective"));
}

TEST(Nccl, IsRefusedIfAReplicaComputesOnTheCpu) {
  EXPECT_EQ(nccl_refusal(kOneOnACpu),
            "--collective nccl: replica 1 computes on the CPU, and NCCL sums on NVIDIA GPUs; "
            "choose --devices cuda, or --collective ring");
}

TEST(CollectiveOptionsOfAJob, KnowTheProgressOfTheSlowestTask) {
  FakeMembership tasks([](const std::string& mine) { return mine; });
  tasks.lowest = 7;
  const Graph graph = [] {
    GraphBuilder build("small");
    return build.finish(build.dense(build.input({2}, {}), "fc", 2));
  }();
  EXPECT_EQ(collective_options({.membership = &tasks}, graph).progress(), 7);
  EXPECT_FALSE(collective_options({}, graph).progress) << "there is no other task";
}

}  // namespace
}  // namespace syncopate
