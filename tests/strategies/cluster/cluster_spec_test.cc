// Tests a ClusterSpec as JSON, which scripts read from `syncopate cluster`, and as TF_CONFIG.
#include "strategies/cluster/cluster_spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/strategies/cluster/resolvers/slurm_case.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

const Variables kTorchrunTask = {{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"MASTER_ADDR", "node7"},
                                 {"MASTER_PORT", "29500"}};

TEST(ClusterJson, HasAllFieldsAndReplacesInvalidUtf8) {
  ClusterSpec spec = resolve(kTorchrunTask);
  spec.notes.emplace_back("odd \xff byte");
  spec.workers = {{"a", 1}, {"::1", 2}};
  const auto found = json::parse(to_json(spec));
  EXPECT_EQ(found.at("source"), "torchrun");
  EXPECT_EQ(found.at("role"), "worker");
  EXPECT_EQ(found.at("index"), 5);
  EXPECT_EQ(found.at("rank"), 5);
  EXPECT_EQ(found.at("world_size"), 8);
  EXPECT_EQ(found.at("num_servers"), 0);
  EXPECT_EQ(found.at("local_rank"), 1);
  EXPECT_EQ(found.at("chief"), false);
  EXPECT_EQ(found.at("workers"), json({"a:1", "[::1]:2"}));
  EXPECT_EQ(found.at("servers"), json::array());
  EXPECT_EQ(found.at("device"), "cpu");
  EXPECT_EQ(found.at("rendezvous"), "node7:29501");
  EXPECT_EQ(found.at("notes").size(), 1U);
  EXPECT_TRUE(json::parse(to_json(resolve({}))).at("rendezvous").is_null());
}

TEST(ClusterJson, ShowsWhetherNoncesAreEqualButNotTheNonce) {
  ClusterSpec spec = resolve(kTorchrunTask);
  spec.nonce = "a secret";
  const std::string text = to_json(spec);
  EXPECT_FALSE(contains(text, "a secret"));
  EXPECT_EQ(json::parse(text).at("nonce"), json::parse(to_json(spec)).at("nonce"));
  spec.nonce = "another secret";
  EXPECT_NE(json::parse(text).at("nonce"), json::parse(to_json(spec)).at("nonce"));
}

TEST(ClusterJson, HasTheNodeAndTheGpusOfASlurmTask) {
  const auto found = json::parse(to_json(resolve(step("n[1-2]", "2(x2)", 4, 3, "n2", 1) +
                                                 Variables{{"CUDA_VISIBLE_DEVICES", "4,5"}})));
  EXPECT_EQ(found.at("node"), "n2");
  EXPECT_EQ(found.at("local_rank"), 1);
  EXPECT_EQ(found.at("gpus"), json({1}));
  EXPECT_TRUE(found.at("nonce").is_null());
}

TEST(TfConfigText, ListsAllTasksWithPortsThatCountUpOnEachNode) {
  const ClusterSpec spec =
      resolve(step("c[3,5,8]", "2(x2),1", 5, 1, "c3", 1), ClusterFlags{.servers = 1});
  EXPECT_EQ(json::parse(to_tf_config(spec, 8888)), json::parse(R"({"cluster": {"ps": ["c3:8888"],
                                        "worker": ["c3:8889", "c5:8888", "c5:8889", "c8:8888"]},
                            "task": {"type": "worker", "index": 0}})"));
}

TEST(TfConfigText, ResolvesToTheSameTask) {
  const Variables variables = step("n[1-2]", "2(x2)", 4, 2, "n2", 0);
  const ClusterSpec spec = resolve(variables);
  const ClusterSpec again = resolve({{"TF_CONFIG", to_tf_config(spec, 0)}});
  EXPECT_EQ(again.index, 2);
  EXPECT_EQ(again.world_size, 4);
  EXPECT_EQ(again.rendezvous.endpoint, spec.rendezvous.endpoint);
  EXPECT_EQ(to_tf_config(again, 0), to_tf_config(spec, 0));
}

TEST(TfConfigText, IsRefusedWhenTheOtherNodesAreUnknown) {
  const auto refused = [](const ClusterSpec& spec, std::uint16_t port) {
    try {
      to_tf_config(spec, port);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(contains(refused(resolve(kTorchrunTask), 1), "torchrun does not list the hosts"));
  EXPECT_TRUE(contains(refused(resolve({}), 0), "this task is alone"));
  EXPECT_TRUE(contains(refused(resolve(step("n1", "2", 2, 0, "n1", 0)), 65535), "beyond port"));
}

}  // namespace
}  // namespace syncopate::test
