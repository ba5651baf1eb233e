// Tests Slurm's short forms for nodes and for tasks per node, and the node of each rank.
#include "strategies/cluster/resolvers/slurm_step.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using Names = std::vector<std::string>;

struct Expansion {
  std::string text;
  Names hosts;
};

class Hostlists : public testing::TestWithParam<Expansion> {};

TEST_P(Hostlists, AreExpandedInTheirOrder) {
  EXPECT_EQ(expand_hostlist(GetParam().text, "LIST"), GetParam().hosts);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Hostlists,
    testing::Values(
        Expansion{"n1", {"n1"}},
        Expansion{"node[1-3,7],gpu-[001-004]",
                  {"node1", "node2", "node3", "node7", "gpu-001", "gpu-002", "gpu-003", "gpu-004"}},
        Expansion{"x[1-2],y5,z[3-4,6,8-9]", {"x1", "x2", "y5", "z3", "z4", "z6", "z8", "z9"}},
        Expansion{"x[0008-0011],y5,z[098-101]",
                  {"x0008", "x0009", "x0010", "x0011", "y5", "z098", "z099", "z100", "z101"}},
        Expansion{"b04-[09-10]", {"b04-09", "b04-10"}},
        Expansion{"n[8-11]", {"n8", "n9", "n10", "n11"}}, Expansion{"n[2,10]", {"n2", "n10"}},
        Expansion{"alpha,beta,gamma", {"alpha", "beta", "gamma"}},
        Expansion{"rack[0-1]n[0-1]", {"rack0n0", "rack0n1", "rack1n0", "rack1n1"}},
        Expansion{"n[1-2]-ib", {"n1-ib", "n2-ib"}}, Expansion{"a b\tc\nd", {"a", "b", "c", "d"}},
        Expansion{"n2,n1,n2", {"n2", "n1", "n2"}}));

struct Broken {
  std::string text;
  int column;
};

class BrokenHostlists : public testing::TestWithParam<Broken> {};

TEST_P(BrokenHostlists, AreRefusedWithTextAndColumn) {
  const std::string line = message_of<UsageError>([] { expand_hostlist(GetParam().text, "LIST"); });
  const std::string start =
      "LIST='" + GetParam().text + "', column " + std::to_string(GetParam().column) + ": ";
  EXPECT_TRUE(line.starts_with(start)) << "'" << line << "'";
}

INSTANTIATE_TEST_SUITE_P(
    Each, BrokenHostlists,
    testing::Values(Broken{"n[3-1]", 6}, Broken{"n[1-2", 6}, Broken{"n]", 2}, Broken{"n[a-b]", 3},
                    Broken{"n[1,,2]", 5}, Broken{"n[[1]]", 3}, Broken{"", 1}, Broken{"n[1-]", 5},
                    Broken{"n[]", 3}, Broken{" , ", 4}, Broken{"n[0-65536]", 10},
                    Broken{"n[0-999][0-999]", 16}, Broken{"n[99999999999999999999]", 23},
                    Broken{"n[18446744073709551615]", 23}, Broken{"n[0000000000000000001]", 22},
                    Broken{"n[0-65535,0-65535]", 18}));

TEST(TaskCounts, RepeatACountByItsFactor) {
  EXPECT_EQ(expand_task_counts("2", "T"), std::vector({2}));
  EXPECT_EQ(expand_task_counts("5,1,3", "T"), std::vector({5, 1, 3}));
  EXPECT_EQ(expand_task_counts("4(x2),1", "T"), std::vector({4, 4, 1}));
  EXPECT_EQ(expand_task_counts("2(x3),1", "T"), std::vector({2, 2, 2, 1}));
}

TEST(TaskCounts, AreRefusedWhenMalformed) {
  for (const char* text : {"2(x0)", "(x2)", "2x3", "0", "", "2,", "2(x", "2(x2", "2(2)", "-1"}) {
    const std::string line = message_of<UsageError>([&] { expand_task_counts(text, "T"); });
    EXPECT_TRUE(line.starts_with("T='" + std::string(text) + "', column ")) << line;
  }
}

// Returns node and local rank of each rank, such as "n1:0 n2:0".
std::string text_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    text += (text.empty() ? "" : " ") + place.node + ":" + std::to_string(place.local_rank);
  }
  return text;
}

const std::vector<NodeTasks> kThreeAndOne = {{"n1", 3}, {"n2", 1}};
const std::vector<NodeTasks> kFourAndThree = {{"n1", 4}, {"n2", 3}};

TEST(TaskPlacement, FillsNodeByNodeUnderBlock) {
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "block")), "n1:0 n1:1 n1:2 n2:0");
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "block:cyclic")), "n1:0 n1:1 n1:2 n2:0");
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "")), "n1:0 n1:1 n1:2 n2:0");
}

TEST(TaskPlacement, SkipsFullNodesUnderCyclic) {
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "cyclic")), "n1:0 n2:0 n1:1 n1:2");
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "cyclic:block,NoPack")), "n1:0 n2:0 n1:1 n1:2");
}

TEST(TaskPlacement, PlacesPlaneSizeTasksPerTurnUnderPlane) {
  EXPECT_EQ(text_of(place_tasks(kFourAndThree, "plane", 2)), "n1:0 n1:1 n2:0 n2:1 n1:2 n1:3 n2:2");
}

TEST(TaskPlacement, CountsLocalRanksPerNodeOfAList) {
  EXPECT_EQ(text_of(place_by_node({"n2", "n1", "n2"})), "n2:0 n1:0 n2:1");
}

}  // namespace
}  // namespace syncopate
