// Tests that every wrong input ends the program with its exit code, one clear line, and no
// half-written file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

// Returns the last line of stderr, which is the error message; notes may precede it.
std::string last_line(const std::string& text) {
  if (text.empty()) return "";
  const std::size_t end = text.size() - 1;  // excludes the newline at the end
  const std::size_t newline = text.rfind('\n', end - 1);
  return text.substr(newline == std::string::npos ? 0 : newline + 1);
}

void expect_refusal(const Arguments& arguments, int exit_code, const std::string& says) {
  const ProgramResult result = run_syncopate(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("syncopate: ", 0), 0U) << result.err;
  EXPECT_TRUE(contains(result.err, says)) << "'" << says << "' is not in: " << result.err;
  EXPECT_EQ(result.out, "");
}

Arguments train(const Arguments& flags) { return as_words("train --no-progress", flags); }

Arguments small(const Arguments& flags) {
  return train(as_words("--model mlp --data synthetic:1x8x8:4 --threads 1", flags));
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// An IdxFolder writes a folder in MNIST's format, with eight 28 x 28 images in each split.
struct IdxFolder {
  std::uint32_t magic = 2051;
  std::uint32_t labels = 8;
  char label = 3;
  std::size_t cut_bytes = 0;  // the bytes missing at the end of the training images

  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    for (const std::string split : {"train", "t10k"}) {
      std::string images = big_endian(magic) + big_endian(8) + big_endian(28) + big_endian(28) +
                           std::string(std::size_t{8} * 28 * 28, '\x40');
      images.resize(images.size() - (split == "train" ? cut_bytes : 0));
      std::ofstream(folder / (split + "-images-idx3-ubyte"), std::ios::binary) << images;
      std::ofstream(folder / (split + "-labels-idx1-ubyte"), std::ios::binary)
          << big_endian(2049) + big_endian(labels) + std::string(labels, label);
    }
  }
};

TEST(BadInput, AMistakeOnTheCommandLineExitsWith2) {
  expect_refusal({"trian"}, 2, "did you mean 'train'");
  expect_refusal(train({"--modle", "mlp"}), 2, "did you mean '--model'");
  // The reason for refusing cuda:99 differs (no module, no driver, or too few GPUs), but each
  // message begins with the flag.
  expect_refusal(train({"--devices", "cuda:99"}), 2, "--devices c");
}

TEST(BadInput, TablesThatTheNetworkCannotLearnExitWith2) {
  const TemporaryFolder scratch;
  const Arguments data{"--data", "csv:" + (scratch / "table.csv").string(), "--batch-size", "1"};
  std::ofstream(scratch / "table.csv") << "0.5,0\n0.25,1\n0.75,1\n";
  expect_refusal(train(data), 2, "found [1]; give --model mlp");
  std::ofstream(scratch / "table.csv") << "0.5,0\n0.25,0\n0.75,0\n";
  expect_refusal(train(data), 2, "all labels are 0; expected at least two classes");
}

TEST(BadInput, ABatchNormOfOneValueExitsWith2) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "n.json") << R"({"name": "n", "nodes": [{"op": "input"},
          {"op": "conv2d", "name": "c", "channels": 4, "kernel": 8, "pad": 0},
          {"op": "batch_norm", "name": "b"}, {"op": "flatten"},
          {"op": "dense", "name": "d", "features": "classes"},
          {"op": "softmax-cross-entropy"}]})";
  const Arguments network = as_words("--model", "file:" + (scratch / "n.json").string(),
                                     "--data synthetic:1x8x8:4 --steps 2");
  expect_refusal(train(network + Arguments{"--batch-size", "1"}), 2,
                 "batch norm b sees one value per channel");
  const Arguments two = as_words("--batch-size 2 --strategy mirrored --replicas 2");
  expect_refusal(train(network + two), 2, "or --batch-norm sync");
  successful(run_syncopate(train(network + two + Arguments{"--batch-norm", "sync"})));
}

TEST(BadInput, SizesThatDoNotFitExitWith2) {
  expect_refusal(small({"--epochs", "1", "--warmup-epochs", "2"}), 2, "--warmup-epochs 2");
  expect_refusal(small({"--warmup-epochs", "1e300"}), 2, "--warmup-epochs 1e+300: expected 0 to 3");
  expect_refusal(small({"--batch-size", "50001"}), 2, "50000 samples");
  expect_refusal(train({"--model", "mnist-cnn", "--data", "synthetic:1x2x2:4"}), 2, "does not fit");
}

TEST(BadInput, DamagedMnistFoldersAreNamedWithWhatIsWrong) {
  const TemporaryFolder scratch;
  const auto refuse = [&](const IdxFolder& folder, int exit_code, const std::string& says) {
    folder.write(scratch / "mnist");
    expect_refusal(train(as_words("--model mlp --data", "mnist:" + (scratch / "mnist").string(),
                                  "--batch-size 4 --metrics", scratch / "m.jsonl")),
                   exit_code, says);
    EXPECT_FALSE(std::filesystem::exists(scratch / "m.jsonl"));
  };
  expect_refusal(train({"--data", "mnist:" + (scratch / "absent").string()}), 2, "absent");
  refuse({.cut_bytes = 1}, 1, "train-images-idx3-ubyte");
  refuse({.magic = 2052}, 1, "magic");
  refuse({.labels = 7}, 1, "7");
  refuse({.label = 10}, 1, "label");
  // Training accepts the undamaged MNIST folder, so damaged folders are refused for the damage.
  IdxFolder{}.write(scratch / "mnist");
  successful(run_syncopate(train(as_words(
      "--model mlp --data", "mnist:" + (scratch / "mnist").string(), "--batch-size 4 --steps 2"))));
}

TEST(BadInput, CheckpointsOfOthersAndDamagedOnesAreRefused) {
  const TemporaryFolder scratch;
  const Arguments keep{"--checkpoint-dir", scratch / "ck", "--steps", "5"};
  successful(run_syncopate(small(keep)));
  const std::filesystem::path file = scratch / ("ck/" + names_in(scratch / "ck").at(0));
  const std::string good = read_text(file);
  const auto evaluate = [&](const std::string& model, const std::string& data) {
    return as_words("evaluate --checkpoint", file, "--model", model, "--data", data);
  };
  expect_refusal(evaluate("resnet20", "synthetic:3x16x16:4"), 2, "mlp");
  expect_refusal(evaluate("mlp", "synthetic:1x8x8:5"), 2, "5");
  expect_refusal(evaluate("mlp", "digits"), 2, "trained with --data synthetic");
  expect_refusal(evaluate("mlp", "synthetic:1x8x8:4") + Arguments{"--seed", "2"}, 2,
                 "trained with --seed 1");
  expect_refusal(
      small(as_words("--checkpoint-dir", scratch / "ck", "--steps 9 --resume --optimizer sgd")), 2,
      "adam");
  expect_refusal(small(as_words("--checkpoint-dir", scratch / "ck", "--steps 9 --resume --seed 2")),
                 2, "--seed 1");
  std::ofstream(file, std::ios::binary) << good.substr(0, good.size() - 100);
  expect_refusal(evaluate("mlp", "synthetic:1x8x8:4"), 1, file.filename().string());
  std::string flipped = good;
  flipped[flipped.size() - 100] ^= 1;
  std::ofstream(file, std::ios::binary) << flipped;
  expect_refusal(evaluate("mlp", "synthetic:1x8x8:4"), 1, file.filename().string());
  std::ofstream(file, std::ios::binary) << good;
  successful(run_syncopate(evaluate("mlp", "synthetic:1x8x8:4")));
  expect_refusal({"evaluate", "--checkpoint", scratch / "none"}, 1, "none");
}

TEST(BadInput, EvaluateNamesTheFolderFlagWhenTheRecordedFolderIsGone) {
  const TemporaryFolder scratch;
  const auto write_data = [&](const std::string& name, char label) {
    IdxFolder{.label = label}.write(scratch / name);
    return "mnist:" + (scratch / name).string();
  };
  const std::string data = write_data("mnist", 3);
  successful(run_syncopate(train(as_words(
      "--model mlp --data", data, "--batch-size 4 --steps 2 --checkpoint-dir", scratch / "ck"))));
  const Arguments evaluate =
      as_words("evaluate --checkpoint", scratch / ("ck/" + names_in(scratch / "ck").at(0)));
  successful(run_syncopate(evaluate));
  std::filesystem::rename(scratch / "mnist", scratch / "moved");
  expect_refusal(evaluate, 2, "expected --data mnist:DIR");
  successful(
      run_syncopate(evaluate + Arguments{"--data", "mnist:" + (scratch / "moved").string()}));
  expect_refusal(evaluate + Arguments{"--data", write_data("other", 4)}, 2, "8 samples of");
}

TEST(BadInput, ADivergingRunStopsNamesTheStepAndKeepsTheLastCheckpoint) {
  const TemporaryFolder scratch;
  const ProgramResult result = run_syncopate(
      small(as_words("--optimizer sgd --learning-rate 1e30 --steps 50 --checkpoint-dir",
                     scratch / "ck", "--checkpoint-every 1")));
  EXPECT_EQ(result.exit_code, 1);
  const std::string line = last_line(result.err);
  EXPECT_EQ(line.rfind("syncopate: ", 0), 0U) << result.err;
  EXPECT_TRUE(contains(line, "step 2"));
  const std::vector<std::string> kept{"checkpoint-000000000001.safetensors"};
  EXPECT_EQ(names_in(scratch / "ck"), kept);
  EXPECT_TRUE(contains(line, kept.front()));
}

TEST(BadInput, AFullCheckpointFolderEndsTheRunAndTheLastGoodOneSurvives) {
  const TemporaryFolder scratch;
  const Arguments run = small({"--checkpoint-dir", scratch / "ck", "--resume"});
  successful(run_syncopate(as_words(run, "--steps 5")));
  const auto before = names_in(scratch / "ck");
  // `ulimit -f` keeps files from growing beyond a few KiB, as a full disk would. The system also
  // sends SIGXFSZ, which would end the program.
  Arguments limited = as_words("/bin/sh -c", std::string("ulimit -f 8; exec \"$@\""), "sh",
                               SYNCOPATE_PROGRAM, run, "--steps 9");
  const ProgramResult result = run_program(limited);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(last_line(result.err).rfind("syncopate: ", 0), 0U) << result.err;
  EXPECT_TRUE(contains(last_line(result.err), "the limit is 4096 bytes: raise it with ulimit -f"))
      << result.err;
  EXPECT_EQ(names_in(scratch / "ck"), before);
}

TEST(BadInput, UnwritablePlacesAreFoundBeforeTraining) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "file") << "in the way";
  expect_refusal(small({"--checkpoint-dir", (scratch / "file").string() + "/ck"}), 1,
                 "--checkpoint-dir");
  expect_refusal(small({"--metrics", (scratch / "absent").string() + "/m.jsonl"}), 1, "m.jsonl");
}

}  // namespace
}  // namespace syncopate::test
