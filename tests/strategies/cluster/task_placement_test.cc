// Which rank runs where, under srun's distributions.
#include "strategies/cluster/task_placement.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

// "n1:0 n2:0": node and local rank of each rank.
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

TEST(TaskPlacement, GoesRoundTheNodesThatHaveRoomUnderCyclic) {
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "cyclic")), "n1:0 n2:0 n1:1 n1:2");
  EXPECT_EQ(text_of(place_tasks(kThreeAndOne, "cyclic:block,NoPack")), "n1:0 n2:0 n1:1 n1:2");
}

TEST(TaskPlacement, DealsPlanesUnderPlane) {
  EXPECT_EQ(text_of(place_tasks(kFourAndThree, "plane", 2)), "n1:0 n1:1 n2:0 n2:1 n1:2 n1:3 n2:2");
}

TEST(TaskPlacement, CountsOnEachNodeWhereTheNodesAreListed) {
  EXPECT_EQ(text_of(place_by_node({"n2", "n1", "n2"})), "n2:0 n1:0 n2:1");
}

}  // namespace
}  // namespace syncopate
