// Tests of --init-from for files whose tensors have other names in front, and for sharded files.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/checkpoint/checkpoint_case.h"
#include "tests/worker/checkpoint/safetensors_file.h"
#include "worker/checkpoint/weights_file.h"

namespace syncopate {
namespace {

using Names = std::vector<std::string>;

const Names kNetworkNames = {"conv.weight",    "bn.weight", "bn.bias", "bn.running_mean",
                             "bn.running_var", "fc.weight", "fc.bias"};

Shape shape_of(const std::string& name) {
  if (name == "conv.weight") return {3, 2, 3, 3};
  if (name == "fc.weight") return {5, 48};
  return {name == "fc.bias" ? 5 : 3};
}

// Returns the network's tensors under other names, all of whose elements are `value`.
std::vector<RawTensor> tensors_named(const std::string& prefix, float value = 1.0F) {
  std::vector<RawTensor> tensors;
  for (const std::string& name : kNetworkNames) {
    const auto count = static_cast<std::size_t>(num_elements(shape_of(name)));
    tensors.push_back(
        {prefix + name, "F32", shape_of(name), bytes_of(std::vector<float>(count, value))});
  }
  return tensors;
}

class NamesOfWeights : public testing::Test {
 protected:
  // Returns the note of what was loaded, or the error.
  std::string load(const std::filesystem::path& path) {
    snapshot_ = {.values = make_host_tensor({graph_.parameter_layout().total()}, DType::kF32),
                 .slots = {},
                 .state = make_host_tensor({graph_.state_layout().total()}, DType::kF32)};
    try {
      return load_weights(path, graph_, 1, snapshot_);
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string load(const std::vector<RawTensor>& tensors) {
    write_file(path_, safetensors_bytes(tensors));
    return load(path_);
  }
  bool all_values_are(float value) const {
    for (const float found : tensor_values(graph_, snapshot_)) {
      if (found != value) return false;
    }
    return true;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "w.safetensors";
  Graph graph_ = checkpoint_graph();
  Snapshot snapshot_;
};

TEST_F(NamesOfWeights, MayHaveAnyPrefix) {
  for (const std::string prefix :
       {"module.", "_orig_mod.", "model.", "module._orig_mod.", "_orig_mod.module.", "net.",
        "backbone.", "model.module.", "state_dict.model.", "0.", "a/b/"}) {
    EXPECT_EQ(load(tensors_named(prefix)),
              "from w.safetensors: 7 tensors (names without the prefix " + prefix + ")");
    EXPECT_TRUE(all_values_are(1.0F)) << prefix;
  }
}

TEST_F(NamesOfWeights, MayHaveNamesOfWrappersBetween) {
  std::vector<RawTensor> tensors = tensors_named("model.");
  for (RawTensor& tensor : tensors) tensor.name.insert(tensor.name.rfind('.'), "._orig_mod");
  EXPECT_EQ(load(tensors),
            "from w.safetensors: 7 tensors (names model.conv._orig_mod.weight for conv.weight and "
            "so on)");
  EXPECT_TRUE(all_values_are(1.0F));
}

TEST_F(NamesOfWeights, WithAPrefixMayLackTheHead) {
  std::vector<RawTensor> tensors = tensors_named("backbone.");
  tensors.resize(5);
  tensors.push_back({"head.weight", "F32", {1}, bytes_of<float>({1.0F})});
  EXPECT_EQ(load(tensors),
            "from w.safetensors: 5 tensors (names without the prefix backbone.); fresh: fc.weight "
            "[5, 48], fc.bias [5]; not used: head.weight");
}

TEST_F(NamesOfWeights, OfTheNetworkAreTakenBeforeThoseWithAPrefix) {
  std::vector<RawTensor> tensors = tensors_named("", 2.0F);
  for (RawTensor& tensor : tensors_named("teacher.", 3.0F)) tensors.push_back(tensor);
  EXPECT_TRUE(contains(load(tensors), "7 tensors; not used: teacher.conv.weight"));
  EXPECT_TRUE(all_values_are(2.0F));
}

TEST_F(NamesOfWeights, OfAMovingAverageAreTakenLast) {
  std::vector<RawTensor> tensors = tensors_named("ema_model.", 2.0F);
  for (RawTensor& tensor : tensors_named("model.", 3.0F)) tensors.push_back(tensor);
  EXPECT_TRUE(contains(load(tensors), "names without the prefix model., not ema_model.)"));
  EXPECT_TRUE(all_values_are(3.0F));
  EXPECT_TRUE(
      contains(load(tensors_named("ema_model.", 2.0F)), "names without the prefix ema_model.)"));
}

TEST_F(NamesOfWeights, OfSlotsOfAnOptimizerAreNoneOfTheNetwork) {
  std::vector<RawTensor> tensors = tensors_named("optimizer.exp_avg.model.", 2.0F);
  for (RawTensor& tensor : tensors_named("model.", 3.0F)) tensors.push_back(tensor);
  EXPECT_TRUE(contains(load(tensors), "not used: 7 slots of the optimizer"));
  EXPECT_TRUE(all_values_are(3.0F));
}

TEST_F(NamesOfWeights, UnderSeveralPrefixesAreThoseWhoseShapesFitOrAreRefused) {
  std::vector<RawTensor> tensors = tensors_named("student.", 2.0F);
  for (RawTensor& tensor : tensors_named("teacher.", 3.0F)) tensors.push_back(tensor);
  const std::string refusal = load(tensors);
  EXPECT_TRUE(
      contains(refusal, "has the tensors of the network 2 times, under student., teacher.; keep",
               "q = 'student.'; s.save_file({k[len(q):]: v for k, v in s.load_file('" +
                   path_.string() + "').items() if k.startswith(q)}, 'ONE.safetensors')\""));
  tensors[0].shape = {1, 54};
  EXPECT_TRUE(contains(load(tensors), "without the prefix teacher."));
  EXPECT_TRUE(all_values_are(3.0F));
}

// The line compares names as the file has them.
TEST_F(NamesOfWeights, UnderSeveralPrefixesBehindAWrapperAreNamedWithIt) {
  std::vector<RawTensor> tensors = tensors_named("module.encoder_q.", 2.0F);
  for (RawTensor& tensor : tensors_named("module.encoder_k._orig_mod.", 3.0F)) {
    tensors.push_back(tensor);
  }
  const std::string refusal = load(tensors);
  EXPECT_TRUE(contains(refusal, "2 times, under module.encoder_k., module.encoder_q.; keep",
                       "q = 'module.encoder_k.'; "));
  tensors = tensors_named("module.ema.", 2.0F);
  for (RawTensor& tensor : tensors_named("module.net.", 3.0F)) tensors.push_back(tensor);
  EXPECT_TRUE(contains(load(tensors), "without the prefix module.net., not module.ema.)"));
}

TEST_F(NamesOfWeights, OfWhichOneIsThereTwiceAreRefused) {
  std::vector<RawTensor> tensors = tensors_named("module.");
  for (RawTensor& tensor : tensors_named("_orig_mod.")) tensors.push_back(tensor);
  EXPECT_TRUE(contains(load(tensors),
                       "has tensor conv.weight twice, as module.conv.weight and "
                       "_orig_mod.conv.weight"));
}

TEST_F(NamesOfWeights, WithAPrefixOfWhichOneIsMissingNameThatOne) {
  std::vector<RawTensor> tensors = tensors_named("module.");
  tensors.erase(tensors.begin() + 1);
  EXPECT_TRUE(contains(load(tensors), "has bn.weight [3], which the file lacks"));
}

TEST_F(NamesOfWeights, OfAnotherNetworkAreShownWithoutCounters) {
  std::vector<RawTensor> tensors;
  for (const char* layer : {"a", "b", "c", "d", "e", "f"}) {
    tensors.push_back(
        {std::string(layer) + ".num_batches_tracked", "I64", {}, bytes_of<std::int64_t>({1})});
  }
  tensors.push_back({"stem.weight", "F32", {1}, bytes_of<float>({1.0F})});
  EXPECT_TRUE(contains(load(tensors), "it has stem.weight; give the --model"));
}

// The fixture has the network's tensors in two shards, the second of which begins with fc.weight.
class ShardedWeights : public NamesOfWeights {
 protected:
  void SetUp() override {
    const std::vector<RawTensor> all = tensors_named("model.", 4.0F);
    std::string map;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string file = i < 5 ? first_ : second_;
      map += (i == 0 ? "\"" : ", \"") + all[i].name + "\": \"" + file + "\"";
    }
    write_index("{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + "}}");
    write_file(folder_.path() / first_, safetensors_bytes({all.begin(), all.begin() + 5}));
    write_file(folder_.path() / second_, safetensors_bytes({all.begin() + 5, all.end()}));
  }
  void write_index(const std::string& text) { write_file(index_, text); }

  std::string first_ = "model-00001-of-00002.safetensors";
  std::string second_ = "model-00002-of-00002.safetensors";
  std::filesystem::path index_ = folder_.path() / "model.safetensors.index.json";
};

TEST_F(ShardedWeights, AreReadByTheirIndex) {
  EXPECT_EQ(load(index_),
            "from model.safetensors.index.json: 7 tensors (names without the prefix model.)");
  EXPECT_TRUE(all_values_are(4.0F));
}

TEST_F(ShardedWeights, UnderSeveralPrefixesAreReadByTheLineShardByShard) {
  std::vector<RawTensor> tensors = tensors_named("a.");
  for (RawTensor& tensor : tensors_named("b.")) tensors.push_back(tensor);
  write_file(folder_.path() / first_, safetensors_bytes(tensors));
  std::string map;
  for (const RawTensor& tensor : tensors) {
    map += (map.empty() ? "\"" : ", \"") + tensor.name + "\": \"" + first_ + "\"";
  }
  write_index("{\"weight_map\": {" + map + "}}");
  EXPECT_TRUE(contains(
      load(index_), "for x in set(__import__('json').load(open('" + index_.string() +
                        "'))['weight_map'].values()) for a, b in s.load_file('" +
                        folder_.path().string() + "/' + x).items()}.items() if k.startswith(q)}"));
}

TEST_F(ShardedWeights, AreComparedBetweenTasksWithAllTheirBytes) {
  const std::string before = describe_weights(index_);
  EXPECT_EQ(describe_weights(index_), before);
  write_file(folder_.path() / second_, safetensors_bytes(tensors_named("model.", 5.0F)));
  EXPECT_NE(describe_weights(index_), before);
}

TEST_F(ShardedWeights, OfWhichOneIsMissingNameIt) {
  std::filesystem::remove(folder_.path() / second_);
  EXPECT_EQ(load(index_), "--init-from " + index_.string() + ": its shard " +
                              (folder_.path() / second_).string() + " is missing; fetch that, too");
}

TEST_F(ShardedWeights, OfWhichATensorIsMissingNameIt) {
  write_file(folder_.path() / second_, safetensors_bytes({tensors_named("model.")[5]}));
  EXPECT_TRUE(contains(load(index_),
                       "tensor model.fc.bias is not in " + (folder_.path() / second_).string()));
}

TEST_F(ShardedWeights, InOtherFoldersAreRefused) {
  for (const char* file : {"../w.safetensors", "/etc/passwd", "a/b.safetensors", "..", ""}) {
    write_index(std::string(R"({"weight_map": {"conv.weight": ")") + file + "\"}}");
    EXPECT_TRUE(
        contains(load(index_), std::string("tensor conv.weight is in the file '") + file +
                                   "', which is no name of a file in the folder of the index"));
  }
}

TEST_F(ShardedWeights, WithoutAMapOfTensorsAreRefused) {
  for (const char* text : {"", "{", "[]", "7", "{\"weight_map\": 3}", "{\"weight_map\": {}}",
                           "{\"weight_map\": {\"a\": 3}}", "{\"architectures\": [\"ResNet\"]}"}) {
    write_index(text);
    EXPECT_TRUE(contains(load(index_), "or the index of sharded ones, {\"weight_map\"")) << text;
  }
  const std::filesystem::path other = folder_.path() / "config";
  write_file(other, "{\"architectures\": [\"ResNet\"]}");
  EXPECT_TRUE(contains(load(other), "JSON without a \"weight_map\""));
}

TEST_F(ShardedWeights, GivenOneShardOnlyNameTheIndex) {
  EXPECT_TRUE(contains(load(folder_.path() / second_),
                       "give " + index_.string() + ", which lists this shard and the others"));
  std::filesystem::remove(index_);
  EXPECT_TRUE(contains(load(folder_.path() / second_), "give the .index.json of all shards"));
}

TEST_F(ShardedWeights, OfPyTorchAreAnsweredWithALineOfPython) {
  write_index(R"({"weight_map": {"conv.weight": "pytorch_model-00001-of-00001.bin"}})");
  EXPECT_TRUE(
      contains(load(index_), "is a file of PyTorch, the index of shards; expected safetensors"));
}

TEST_F(ShardedWeights, InAFolderGivenAloneNameTheIndex) {
  EXPECT_EQ(load(folder_.path()), folder_.path().string() +
                                      " is a folder without checkpoints; give a file, such as " +
                                      index_.string());
}

}  // namespace
}  // namespace syncopate
