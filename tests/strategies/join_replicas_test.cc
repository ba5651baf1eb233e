// Where gradients are summed, by where replicas are.
#include "strategies/join_replicas.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/errors.h"

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

std::string refusal(const Places& replicas) {
  try {
    (void)choose_sums("nccl", replicas);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(GradientsOfReplicas, AreSummedByNcclWhereEachHasAGpu) {
  EXPECT_EQ(place("auto", kTwoGpusOfAProcess), SumPlace::kNccl);
  EXPECT_EQ(place("auto", kAGpuPerTask), SumPlace::kNccl);
  EXPECT_EQ(place("nccl", kAGpuPerTask), SumPlace::kNccl);
  EXPECT_EQ(place("nccl", kAlone), SumPlace::kNccl);
}

TEST(GradientsOfReplicas, AreSummedByAKernelOnAGpuThatOneProcessHasToItself) {
  EXPECT_EQ(place("auto", kOneGpuForAll), SumPlace::kOneGpu);
  EXPECT_EQ(place("local", kOneGpuForAll), SumPlace::kOneGpu);
}

TEST(GradientsOfReplicas, NeedNoSumOfOne) { EXPECT_EQ(place("auto", kAlone), SumPlace::kNowhere); }

TEST(GradientsOfReplicas, AreSummedOnTheHostElsewhereAndItIsSaidWhy) {
  for (const Places& replicas : {kTasksOnOneGpu, kTwoOnEachGpu}) {
    const SumChoice choice = choose_sums("auto", replicas);
    EXPECT_EQ(choice.place, SumPlace::kHost);
    EXPECT_NE(choice.why_host.find("share a GPU (0000:1b)"), std::string::npos) << choice.why_host;
  }
  // Of the CPU nobody expects anything else.
  EXPECT_EQ(choose_sums("auto", kOneOnACpu).why_host, "");
  EXPECT_EQ(place("auto", kOneOnACpu), SumPlace::kHost);
}

TEST(GradientsOfReplicas, AreSummedOnTheHostWhereThatWasAskedFor) {
  for (const char* collective : {"ring", "mpi"}) {
    for (const Places& replicas : {kTwoGpusOfAProcess, kAGpuPerTask, kAlone}) {
      EXPECT_EQ(place(collective, replicas), SumPlace::kHost);
    }
  }
  EXPECT_EQ(place("local", kTwoGpusOfAProcess), SumPlace::kHost);
}

TEST(Nccl, IsRefusedWhereReplicasShareAGpu) {
  EXPECT_EQ(refusal(kTasksOnOneGpu),
            "--collective nccl: replicas 0 and 1 share a GPU (0000:1b), which NCCL refuses; give "
            "each replica a GPU of its own, or choose --collective ring");
  EXPECT_NE(refusal(kOneGpuForAll).find("or leave --collective out"), std::string::npos);
}

TEST(Nccl, IsRefusedOnCpus) {
  EXPECT_EQ(refusal(kOneOnACpu),
            "--collective nccl: replica 1 computes on the CPU, and NCCL sums on NVIDIA GPUs; "
            "choose --devices cuda, or --collective ring");
}

}  // namespace
}  // namespace syncopate
