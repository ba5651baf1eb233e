// Tests --model file:NET.json through the command line: the same bits as the built-in network that
// the file was printed from, under every strategy, in checkpoints, and where tasks do not agree.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Arguments kData = {"--data", "synthetic:3x16x16:4:256"};

// A network of ten nodes, as a user writes it.
constexpr const char* kNetwork = R"({
  "name": "tiny",
  "nodes": [
    {"op": "input"},
    {"op": "conv2d", "name": "conv1", "channels": 8, "pad": 1},
    {"op": "batch_norm", "name": "bn1"},
    {"op": "relu", "name": "trunk"},
    {"op": "conv2d", "name": "conv2", "channels": 8, "pad": 1, "bias": true},
    {"op": "add", "inputs": ["conv2", "trunk"]},
    {"op": "relu"},
    {"op": "global_average_pool"},
    {"op": "dense", "name": "fc", "features": "classes"},
    {"op": "softmax-cross-entropy"}
  ]
}
)";

class ANetworkFile : public testing::Test {
 protected:
  // Returns the value of --model for a file of this text.
  std::string model_of(const std::string& name, const std::string& text) const {
    const std::string path = scratch_ / name.c_str();
    std::ofstream(path) << text;
    return "file:" + path;
  }

  // Trains a few steps and returns the hash of the weights.
  std::string weights_hash(const Arguments& start, const std::string& model) const {
    const std::string metrics = scratch_ / "m.jsonl";
    const ProgramResult run = successful(run_syncopate(
        start + kData +
        as_words("--model", model,
                 "--steps 3 --batch-size-per-replica 16 --threads 1 --no-progress --metrics",
                 metrics)));
    if (run.exit_code != 0) return "";
    const nlohmann::json hash = metrics_lines(metrics, "summary").front().at("weights_hash");
    return hash.get<std::string>();
  }

  TemporaryFolder scratch_;
};

TEST_F(ANetworkFile, TrainsToTheBitsOfTheNetworkThatItWasPrintedFrom) {
  for (const std::string name : {"mlp", "mnist-cnn", "resnet20"}) {
    const ProgramResult printed =
        successful(run_syncopate(Arguments{"network", "--json", "--model", name} + kData));
    const std::string file = model_of(name + ".json", printed.out);
    const std::string expected = weights_hash({"train"}, name);
    EXPECT_EQ(weights_hash({"train"}, file), expected) << name;
    EXPECT_FALSE(expected.empty());
  }
}

TEST_F(ANetworkFile, TrainsUnderEveryStrategy) {
  const std::string file = model_of("net.json", kNetwork);
  const Arguments two_workers = as_words("launch --workers 2 -- train --strategy");
  const std::string mirrored =
      weights_hash({"train", "--strategy", "mirrored", "--replicas", "2"}, file);
  EXPECT_EQ(weights_hash(two_workers + Arguments{"multi-worker-mirrored"}, file), mirrored);
  EXPECT_EQ(weights_hash({"train", "--strategy", "central-storage", "--replicas", "2"}, file),
            mirrored);
  const Arguments servers =
      as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server --consistency");
  EXPECT_FALSE(weights_hash(servers + Arguments{"sync"}, file).empty());
  EXPECT_FALSE(weights_hash(servers + Arguments{"async"}, file).empty());
}

TEST_F(ANetworkFile, IsPrintedAsATable) {
  const ProgramResult table = successful(
      run_syncopate(Arguments{"network", "--model", model_of("net.json", kNetwork)} + kData));
  for (const char* text : {"network tiny", "conv1", "[16, 16, 8]", "55,296", "global_average_pool",
                           "852", "202,784"}) {
    EXPECT_TRUE(contains(table.out, text)) << text << " in\n" << table.out;
  }
}

// Returns the names in the rows that are marked as places to cut.
std::vector<std::string> marked_names(const std::string& table) {
  std::vector<std::string> names;
  std::istringstream lines(table.substr(0, table.find("\n\n+ ")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("+ ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

TEST_F(ANetworkFile, IsMarkedWhereItCanBeCut) {
  // conv2 and the nodes behind it, of which the first reads the output before conv2 too.
  const std::string file = model_of("net.json", kNetwork);
  const ProgramResult table = run_syncopate(Arguments{"network", "--model", file} + kData);
  EXPECT_EQ(marked_names(table.out), (std::vector<std::string>{"conv1", "bn1", "conv2"}))
      << table.out;
  EXPECT_TRUE(contains(table.out, "--cut NAME,..."));
  for (const std::string& name : marked_names(table.out)) {
    EXPECT_FALSE(
        weights_hash(as_words("train --strategy pipeline --share-devices --cut", name), file)
            .empty());
  }
}

TEST(TheTableOfANetwork, NamesTheMemoryOfATrainingStep) {
  const ProgramResult table =
      run_syncopate({"network", "--model", "mlp", "--data", "synthetic:1x64x64:4:64"});
  // 4096 * 128 + 128 + 128 * 4 + 4 parameters of 4 bytes, and 128 inputs of fc2 for 32 samples.
  EXPECT_TRUE(contains(table.out,
                       "a training step takes at least 8.0 MiB: 2.0 of values, 2.0 of "
                       "gradients, 4.0 of optimizer\n  state (--optimizer adam), 0.0 of "
                       "activations (--batch-size-per-replica"));
}

TEST(TheTableOfANetwork, KeepsLongNamesApartFromTheirOperations) {
  const ProgramResult table = successful(run_syncopate(
      as_words("network --model unet --data shapes --cache-dir", SYNCOPATE_TEST_CACHE)));
  EXPECT_FALSE(contains(table.out, ".0conv2d"));
  EXPECT_TRUE(contains(table.out, ".0  conv2d"));
}

TEST_F(ANetworkFile, IsReadUnderAnyPathButWithTheSameContentsByAllTasks) {
  const std::string one = model_of("one.json", kNetwork);
  const std::string same = model_of("same.json", kNetwork);
  std::string changed = kNetwork;
  changed.replace(changed.find("\"pad\": 1, \"bias\""), 8, "\"pad\": 1 ");
  const std::string other = model_of("other.json", changed);
  for (const std::string& second : {same, other}) {
    const Port port(false);
    const auto task = [&](int rank, const std::string& model) {
      return syncopate_command(as_words("train --strategy multi-worker-mirrored --steps 1 --rank",
                                        std::to_string(rank), "--world-size 2 --rendezvous",
                                        port.endpoint(),
                                        "--rendezvous-timeout 20 --threads 1 --model", model) +
                               kData);
    };
    for (const ProgramResult& result : run_all({task(0, one), task(1, second)})) {
      if (second == same) {
        EXPECT_EQ(result.exit_code, 0) << result.err;
      } else {
        expect_one_line(result, {"--model", "with CRC"});
      }
    }
  }
}

TEST_F(ANetworkFile, IsKeptInTheCheckpoint) {
  const std::string file = model_of("net.json", kNetwork);
  const Arguments folder = {"--checkpoint-dir", scratch_ / "ck"};
  (void)weights_hash(Arguments{"train"} + folder, file);
  std::string checkpoint;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "ck")) {
    if (entry.path().extension() == ".safetensors") checkpoint = entry.path().string();
  }
  // The file is no longer needed to evaluate; another network of the same parameters is refused.
  const Arguments evaluate = {"evaluate", "--checkpoint", checkpoint};
  successful(run_syncopate(evaluate + Arguments{"--model", file}));
  std::string changed = kNetwork;
  const std::string relu = "    {\"op\": \"relu\"},\n";
  changed.erase(changed.find(relu), relu.size());
  const std::string other = model_of("other.json", changed);
  const ProgramResult contradiction = run_syncopate(evaluate + Arguments{"--model", other});
  EXPECT_EQ(contradiction.exit_code, 2);
  expect_one_line(contradiction, {"other.json", "tiny"});
  const Arguments resume =
      as_words("train --resume --steps 5 --batch-size-per-replica 16 --threads 1") + folder + kData;
  const ProgramResult refused = run_syncopate(resume + Arguments{"--model", other});
  EXPECT_EQ(refused.exit_code, 2);
  expect_one_line(refused, {"another network tiny", "its node 6 is {\"op\":\"relu\"", ", found {"});
  std::string renamed = kNetwork;
  const std::string layer = "\"fc\"";
  renamed.replace(renamed.find(layer), layer.size(), "\"last\"");
  const ProgramResult other_name =
      run_syncopate(resume + Arguments{"--model", model_of("renamed.json", renamed)});
  EXPECT_EQ(other_name.exit_code, 2);
  expect_one_line(other_name, {"another network tiny", "last.weight is not in the file",
                               "give the --model and --head"});
  successful(run_syncopate(resume + Arguments{"--model", file}));
  std::filesystem::remove(scratch_ / "net.json");
  successful(run_syncopate(evaluate));
}

TEST_F(ANetworkFile, WithAMistakeIsRefusedWithItsLine) {
  std::string text = kNetwork;
  text.replace(text.find("global_average_pool"), 19, "globalaveragepool");
  const ProgramResult wrong = run_syncopate(
      Arguments{"train", "--model", model_of("net.json", text), "--steps", "1"} + kData);
  EXPECT_EQ(wrong.exit_code, 2);
  expect_one_line(wrong, {"net.json:11: node 7 (globalaveragepool): no such operation"});
  const ProgramResult missing = run_syncopate({"train", "--model", "file:/none.json"});
  EXPECT_EQ(missing.exit_code, 1);
  expect_one_line(missing, {"network file /none.json", "No such file"});
  const ProgramResult unnamed = run_syncopate({"train", "--model", "net.json"});
  EXPECT_EQ(unnamed.exit_code, 2);
  expect_one_line(unnamed, {"--model net.json", "give file:net.json"});
}

}  // namespace
}  // namespace syncopate::test
