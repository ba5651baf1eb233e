// Tests that training with dropout gives the same bits whatever divides the batch: lanes, replicas,
// tasks, micro-batches, and a resume in the middle of an epoch.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// A network without batch norm, whose sums over a batch of two parts are those of the parts.
constexpr const char* kNetworkWithDropout = R"({
  "name": "dropped",
  "nodes": [
    {"op": "input"},
    {"op": "conv2d", "name": "conv", "channels": 10, "pad": 1, "bias": true},
    {"op": "layer_norm", "name": "norm"},
    {"op": "relu"},
    {"op": "dropout", "name": "drop1", "rate": 0.25},
    {"op": "max_pool"},
    {"op": "flatten"},
    {"op": "dropout", "name": "drop2"},
    {"op": "dense", "name": "fc", "features": "classes"},
    {"op": "softmax-cross-entropy"}
  ]
}
)";

class ADropout : public testing::Test {
 protected:
  std::string model_of(const std::string& text) const {
    const std::string path = scratch_ / "net.json";
    std::ofstream(path) << text;
    return "file:" + path;
  }

  // Trains on 256 samples, 32 a step, and returns the hash of the weights. `start`: the command.
  std::string weights_hash(const Arguments& start, const Arguments& rest,
                           const std::string& text = kNetworkWithDropout) const {
    const std::string metrics = scratch_ / "m.jsonl";
    const ProgramResult run =
        successful(run_syncopate(start +
                                 as_words("--data synthetic:3x10x10:4:256 --no-progress --metrics",
                                          metrics, "--model", model_of(text)) +
                                 rest));
    if (run.exit_code != 0) return "";
    return summary_of(metrics).at("weights_hash").get<std::string>();
  }

  TemporaryFolder scratch_;
};

const Arguments kTwoShares = as_words("--batch-size-per-replica 16 --threads 1 --steps 10");

TEST_F(ADropout, DropsTheSameElementsHoweverABatchIsDivided) {
  const std::string lanes =
      weights_hash({"train"}, as_words("--batch-size-per-replica 32 --threads 2 --steps 10"));
  EXPECT_FALSE(lanes.empty());
  EXPECT_EQ(weights_hash({"train", "--accumulate", "2"}, kTwoShares), lanes);
  EXPECT_EQ(weights_hash({"train", "--strategy", "mirrored", "--replicas", "2"}, kTwoShares),
            lanes);
  EXPECT_EQ(weights_hash({"train", "--strategy", "central-storage", "--replicas", "2"}, kTwoShares),
            lanes);
  const Arguments workers = as_words("launch --workers 2 -- train --strategy");
  EXPECT_EQ(weights_hash(workers + Arguments{"multi-worker-mirrored"}, kTwoShares), lanes);
  std::string renamed = kNetworkWithDropout;
  renamed.replace(renamed.find("drop1"), 5, "drop3");
  EXPECT_NE(weights_hash({"train", "--accumulate", "2"}, kTwoShares, renamed), lanes)
      << "the name of the node selects the elements";
}

TEST_F(ADropout, TrainsUnderAnAsynchronousParameterServer) {
  const Arguments servers = as_words(
      "launch --workers 2 --servers 1 -- train --strategy parameter-server --consistency async");
  EXPECT_FALSE(weights_hash(servers, kTwoShares).empty());
}

TEST_F(ADropout, ContinuesAfterAResumeInTheMiddleOfAnEpoch) {
  const Arguments run = {"--batch-size-per-replica", "32", "--threads", "1", "--steps"};
  const std::string whole = weights_hash({"train"}, run + Arguments{"12"});
  const Arguments kept = {"train", "--checkpoint-dir", scratch_ / "ck", "--resume"};
  EXPECT_NE(weights_hash(kept, run + Arguments{"5"}), whole);  // an epoch has 8 steps
  EXPECT_EQ(weights_hash(kept, run + Arguments{"12"}), whole);
}

}  // namespace
}  // namespace syncopate::test
