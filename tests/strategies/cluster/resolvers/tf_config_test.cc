// Tests TF_CONFIG in the forms that TensorFlow accepts.
#include <gtest/gtest.h>

#include "tests/strategies/cluster/cluster_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

ClusterSpec resolve_config(const std::string& cluster, const std::string& task) {
  return resolve({{"TF_CONFIG", R"({"cluster": )" + cluster + R"(, "task": )" + task + "}"}});
}

std::string refusal_of(const std::string& cluster, const std::string& task) {
  return refusal({{"TF_CONFIG", R"({"cluster": )" + cluster + R"(, "task": )" + task + "}"}});
}

TEST(TfConfig, TakesTheIndexOfAWorkerAsRankEvenIfItIsText) {
  const ClusterSpec spec =
      resolve_config(R"({"worker": ["a:1", "b:2"]})", R"({"type": "worker", "index": "1"})");
  EXPECT_EQ(spec.source, "TF_CONFIG");
  EXPECT_EQ(spec.role, Role::kWorker);
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_EQ(spec.workers, (std::vector<Endpoint>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"a", 1}));
}

TEST(TfConfig, CountsTheChiefAsRankZero) {
  const std::string cluster = R"({"worker": ["a:1", "b:2"], "chief": ["c:3"]})";
  const ClusterSpec worker = resolve_config(cluster, R"({"type": "worker", "index": 1})");
  EXPECT_EQ(worker.index, 2);
  EXPECT_EQ(worker.world_size, 3);
  EXPECT_FALSE(worker.is_chief());
  EXPECT_EQ(worker.rendezvous.endpoint, (Endpoint{"c", 3}));
  EXPECT_TRUE(resolve_config(cluster, R"({"type": "chief", "index": 0})").is_chief());
  EXPECT_FALSE(resolve_config(cluster, R"({"type": "worker", "index": 0})").is_chief());
}

TEST(TfConfig, DoesNotCountAnEvaluatorAsAWorker) {
  const ClusterSpec spec = resolve_config(R"({"worker": ["a:1", "b:2"], "ps": ["p:3"]})",
                                          R"({"type": "evaluator", "index": 0})");
  EXPECT_EQ(spec.role, Role::kEvaluator);
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_FALSE(spec.is_chief());
}

TEST(TfConfig, TakesPsTasksAsServers) {
  const ClusterSpec spec =
      resolve_config(R"({"chief": ["c:3"], "worker": ["a:1"], "ps": ["p:4", "q:5"]})",
                     R"({"type": "ps", "index": 1})");
  EXPECT_EQ(spec.role, Role::kServer);
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.num_servers, 2);
  EXPECT_EQ(spec.world_size, 2);
  EXPECT_EQ(spec.servers, (std::vector<Endpoint>{{"p", 4}, {"q", 5}}));
}

TEST(TfConfig, WithPsTasksHasTheRendezvousAtTheFirstOfThem) {
  const std::string cluster = R"({"chief": ["c:3"], "worker": ["a:1"], "ps": ["p:4", "q:5"]})";
  for (const auto& [task, hosts] : {std::pair(R"({"type": "chief", "index": 0})", false),
                                    std::pair(R"({"type": "worker", "index": 0})", false),
                                    std::pair(R"({"type": "ps", "index": 0})", true),
                                    std::pair(R"({"type": "ps", "index": 1})", false),
                                    std::pair(R"({"type": "evaluator", "index": 0})", false)}) {
    const ClusterSpec spec = resolve_config(cluster, task);
    EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"p", 4})) << task;
    EXPECT_EQ(spec.hosts_rendezvous(), hosts) << task;
  }
}

TEST(TfConfig, OfOneWorkerAndAPsTaskHasARendezvous) {
  const ClusterSpec spec =
      resolve_config(R"({"worker": ["a:1"], "ps": ["p:4"]})", R"({"type": "worker", "index": 0})");
  EXPECT_EQ(spec.world_size, 1);
  EXPECT_EQ(spec.rendezvous.endpoint, (Endpoint{"p", 4}));
}

TEST(TfConfig, AcceptsAMapFromIndexToAddress) {
  const ClusterSpec spec = resolve_config(R"({"worker": {"1": "b:2", "0": "a:1"}})",
                                          R"({"type": "worker", "index": 1})");
  EXPECT_EQ(spec.workers, (std::vector<Endpoint>{{"a", 1}, {"b", 2}}));
}

TEST(TfConfig, OfOneTaskHasNoRendezvous) {
  const ClusterSpec spec =
      resolve_config(R"({"worker": ["a:1"]})", R"({"type": "worker", "index": 0})");
  EXPECT_EQ(spec.world_size, 1);
  EXPECT_EQ(spec.rendezvous.endpoint, std::nullopt);
}

TEST(TfConfig, WithoutContentIsIgnored) {
  const ClusterSpec spec = resolve({{"TF_CONFIG", "{}"}});
  EXPECT_EQ(spec.source, "none");
  EXPECT_EQ(notes_of(spec), "");
}

TEST(TfConfig, WithoutATaskIsIgnoredWithANote) {
  const ClusterSpec spec = resolve({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}})"}});
  EXPECT_EQ(spec.source, "none");
  EXPECT_EQ(notes_of(spec), "TF_CONFIG: ignored, it is incomplete: it has no task\n");
}

TEST(TfConfig, NotesTheKeysThatItDoesNotRead) {
  const ClusterSpec spec = resolve(
      {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0},)"
                     R"( "rpc_layer": "grpc", "odd": 1})"}});
  EXPECT_EQ(spec.source, "TF_CONFIG");
  EXPECT_EQ(notes_of(spec), "TF_CONFIG: ignored in it: odd, rpc_layer\n");
}

struct WrongConfig {
  std::string cluster;
  std::string task;
  std::string says;
};

class WrongTfConfig : public testing::TestWithParam<WrongConfig> {};

TEST_P(WrongTfConfig, IsRefused) {
  const std::string line = refusal_of(GetParam().cluster, GetParam().task);
  EXPECT_TRUE(contains(line, "TF_CONFIG: ", GetParam().says)) << "'" << line << "'";
}

const std::string kFirstWorker = R"({"type": "worker", "index": 0})";

INSTANTIATE_TEST_SUITE_P(
    Each, WrongTfConfig,
    testing::Values(
        WrongConfig{R"({"worker": ["a:1", "b:1", "c:1"]})", R"({"type": "worker", "index": 3})",
                    "this task is worker 3, but cluster lists 3"},
        WrongConfig{R"({"chief": ["a:1", "b:1"]})", R"({"type": "chief", "index": 0})",
                    "cluster.chief has 2 tasks"},
        WrongConfig{R"({"worker": ["a:1"], "ps": ["a:1"]})", kFirstWorker, "address a:1 twice"},
        WrongConfig{R"({"master": ["a:1"]})", kFirstWorker, "task type 'master'"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"type": "wroker", "index": 0})", "'wroker'"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"type": "chief", "index": 0})",
                    "this task is chief 0, but cluster lists 0"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"type": "worker"})", "task has no index"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"index": 0})", "task has no type"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"type": "worker", "index": -1})",
                    "task.index=-1"},
        WrongConfig{R"({"worker": ["a:1"]})", R"({"type": "worker", "index": 0.5})",
                    "task.index=0.5"},
        WrongConfig{R"({"worker": ["a"]})", kFirstWorker, "cluster.worker[0]"},
        WrongConfig{R"({"worker": [7]})", kFirstWorker, "cluster.worker[0]"},
        WrongConfig{R"({"worker": "a:1"})", kFirstWorker, "cluster.worker: expected a list"},
        WrongConfig{R"({"worker": {"0": "a:1", "2": "b:1"}})", kFirstWorker, "cluster.worker[2]"},
        WrongConfig{R"({"worker": {"0": "a:1", "00": "b:1"}})", kFirstWorker,
                    "cluster.worker[00] comes twice"},
        WrongConfig{R"(["a:1"])", kFirstWorker, "cluster: expected a map"},
        WrongConfig{R"({"ps": ["a:1"]})", R"({"type": "ps", "index": 0})", "no task to train"},
        WrongConfig{R"({"worker": ["a:1"]})", R"(["worker", 0])", "task: expected"},
        WrongConfig{R"({"worker": ["a:1")", kFirstWorker, "not JSON"}));

TEST(TfConfig, IsRefusedUnlessItIsAnObject) {
  EXPECT_TRUE(contains(refusal({{"TF_CONFIG", "[]"}}), "found array"));
  EXPECT_TRUE(contains(refusal({{"TF_CONFIG", "worker"}}), "not JSON"));
}

}  // namespace
}  // namespace syncopate::test
