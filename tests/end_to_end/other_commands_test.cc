// Tests `evaluate`, `info` and `--help`.
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

TEST(EvaluateProgram, FindsExactlyWhatTheTrainingRunFound) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4 --steps 100 "
                             "--threads 1 --no-progress --seed 7 --checkpoint-dir",
                             scratch / "ck", "--metrics", scratch / "m.jsonl")));
  const auto summary = summary_of(scratch / "m.jsonl");
  const std::string file = scratch / ("ck/" + names_in(scratch / "ck").at(0));
  // A checkpoint records network, data set and seed; `evaluate` accepts flags with equal values.
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, as_words("--model mlp --data synthetic:1x8x8:4 --seed 7")}) {
    const ProgramResult result = successful(
        run_syncopate(as_words("evaluate --checkpoint", file, "--threads 1 --json") + flags));
    const auto found = nlohmann::json::parse(result.out);
    EXPECT_EQ(found.at("test_accuracy"), summary.at("test_accuracy"));
    EXPECT_EQ(found.at("test_loss"), summary.at("test_loss"));
    EXPECT_EQ(found.at("samples"), 10000);
    EXPECT_EQ(found.at("step"), 100);
    EXPECT_EQ(found.at("model"), "mlp");
    EXPECT_EQ(found.at("data"), "synthetic:1x8x8:4");
    double correct = 0.0;  // recall counts every sample of a class once
    std::int64_t samples = 0;
    for (const auto& quality : found.at("classes")) {
      samples += quality.at("samples").get<std::int64_t>();
      correct += quality.at("recall").get<double>() * quality.at("samples").get<double>();
    }
    EXPECT_EQ(samples, 10000);
    EXPECT_NEAR(correct / 10000.0, found.at("test_accuracy").get<double>(), 1e-9);
  }
}

TEST(CheckpointFlag, TakesTheNewestCheckpointOfAFolderAndNamesIt) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4:64 --steps 3 --threads 1 "
                             "--no-progress --checkpoint-every 2 --checkpoint-dir",
                             scratch / "ck")));
  const std::string newest = scratch / "ck/checkpoint-000000000003.safetensors";
  const std::string input = scratch / "x.npy";
  std::ofstream(input, std::ios::binary)
      << std::string("\x93NUMPY\x01\x00\x76\x00", 10)
      << "{'descr': '|u1', 'fortran_order': False, 'shape': (8, 8, 1), }" + std::string(55, ' ') +
             "\n"
      << std::string(64, '\7');
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"evaluate"}, {"predict", input}, {"export", scratch / "w"}}) {
    const ProgramResult result = successful(
        run_syncopate(command + std::vector<std::string>{"--checkpoint", scratch / "ck"}));
    EXPECT_TRUE(contains(result.err, "newest checkpoint of the folder is taken, " + newest));
    const ProgramResult of_file =
        successful(run_syncopate(command + std::vector<std::string>{"--checkpoint", newest}));
    EXPECT_FALSE(contains(of_file.err, "newest"));
  }
}

// Returns what predict, evaluate and export report about a checkpoint.
std::vector<ProgramResult> results_of(const TemporaryFolder& scratch,
                                      const std::filesystem::path& checkpoint) {
  std::vector<ProgramResult> results;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"evaluate"}, {"predict", "x.npy"}, {"export", scratch / "out"}}) {
    results.push_back(
        run_syncopate(command + std::vector<std::string>{"--checkpoint", checkpoint.string()}));
  }
  return results;
}

TEST(CheckpointFlag, NamesTheCheckpointBeforeADamagedOne) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4:64 --steps 3 --threads 1 "
                             "--no-progress --checkpoint-every 2 --checkpoint-dir",
                             scratch / "ck")));
  const std::filesystem::path newest = scratch / "ck/checkpoint-000000000003.safetensors";
  const std::string older = scratch / "ck/checkpoint-000000000002.safetensors";
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) - 1);
  for (const std::filesystem::path& given : {scratch / "ck", newest}) {
    for (const ProgramResult& result : results_of(scratch, given)) {
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_TRUE(contains(result.err, "try the older one, " + older + "\n"));
    }
  }
  std::filesystem::remove(older);
  for (const ProgramResult& result : results_of(scratch, scratch / "ck")) {
    EXPECT_TRUE(contains(result.err, "; there is no older one in its folder\n"));
  }
}

// Such weights have no network of their own.
TEST(CheckpointFlag, LeadsFromShardedWeightsToTraining) {
  const TemporaryFolder scratch;
  const std::filesystem::path index = scratch / "model.safetensors.index.json";
  const std::filesystem::path shard = scratch / "model-00001-of-00002.safetensors";
  std::ofstream(index) << R"({"weight_map": {"a": "model-00001-of-00002.safetensors",)"
                       << R"( "b": "model-00002-of-00002.safetensors"}})";
  std::ofstream(shard) << "anything";
  for (const std::filesystem::path& given : {scratch / "", index, shard}) {
    for (const ProgramResult& result : results_of(scratch, given)) {
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_TRUE(contains(result.err,
                           "found weights without their network; train from them: syncopate "
                           "train --model NET --init-from " +
                               index.string() + " --checkpoint-dir DIR\n"));
    }
  }
}

TEST(InitFromFlag, RefusesOneShardOfSeveral) {
  const TemporaryFolder scratch;
  const std::vector<std::string> train =
      as_words("train --model mlp --data synthetic:1x8x8:4:64 --steps 1 --threads 1 --no-progress");
  successful(run_syncopate(train + std::vector<std::string>{"--checkpoint-dir", scratch / "ck"}));
  const std::string whole = scratch / "model-00001-of-00001.safetensors";
  const std::string first = scratch / "model-00001-of-00002.safetensors";
  successful(run_syncopate({"export", "--checkpoint", scratch / "ck", whole}));
  std::filesystem::copy_file(whole, first);
  successful(run_syncopate(train + std::vector<std::string>{"--init-from", whole}));
  expect_failure(run_syncopate(train + std::vector<std::string>{"--init-from", first}), 2,
                 {first +
                  " is one shard of the weights of a network; give the "
                  ".index.json of all shards, " +
                  (scratch / "model.safetensors.index.json").string()});
}

TEST(EvaluateProgram, PrintsPrecisionAndRecallPerClass) {
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:3:64 --steps 1 "
                             "--no-progress --checkpoint-dir",
                             scratch / "ck")));
  const ProgramResult result = successful(run_syncopate(
      {"evaluate", "--checkpoint", scratch / ("ck/" + names_in(scratch / "ck").at(0))}));
  EXPECT_TRUE(contains(result.out, "\nclass     samples   precision    recall       IoU\n0 "));
}

TEST(EvaluateProgram, ShowsWhatAPathShouldBeThatIsNoCheckpoint) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "text") << "hello";
  for (const std::string& name : {std::string("absent"), std::string("text")}) {
    const ProgramResult result =
        run_syncopate({"evaluate", "--checkpoint", (scratch / name).string()});
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_TRUE(contains(result.err, "expected a checkpoint of syncopate train"));
  }
  expect_failure(run_syncopate({"evaluate", "--checkpoint", scratch / ""}), 2,
                 {"is a folder without checkpoints; give a file"});
}

TEST(EvaluateProgram, ShowsItsProgressOnATerminal) {
  if (!std::filesystem::exists("/usr/bin/script")) GTEST_SKIP() << "there is no script(1)";
  const TemporaryFolder scratch;
  successful(
      run_syncopate(as_words("train --model mlp --data synthetic:1x8x8:4:512 --steps 1 "
                             "--no-progress --checkpoint-dir",
                             scratch / "ck")));
  const std::string file = scratch / ("ck/" + names_in(scratch / "ck").at(0));
  // script(1) gives the program a terminal of its own.
  const ProgramResult result =
      run_program(as_words("/usr/bin/script -qec",
                           SYNCOPATE_PROGRAM " evaluate --checkpoint '" + file + "'", "/dev/null"));
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "\revaluating ", "1 steps of mlp on synthetic:1x8x8:4:512"));
}

TEST(InfoProgram, ListsTablesAndLibrariesAsJson) {
  const ProgramResult result = successful(run_syncopate({"info", "--json"}));
  const auto info = nlohmann::json::parse(result.out);
  EXPECT_EQ(info.at("strategies").at(0).at("name"), "one-device");
  EXPECT_GE(info.at("networks").size(), 4U);
  EXPECT_GE(info.at("datasets").size(), 4U);
  EXPECT_EQ(info.at("libraries").at(0).at("name"), "oneDNN");
  EXPECT_EQ(info.at("libraries").at(0).at("loaded"), info.at("libraries").at(0).at("built"));
  // Each library that a build may lack is listed, with its version or the word none.
  for (const char* name : {"CUDA", "MPI", "protobuf"}) {
    EXPECT_TRUE(std::ranges::any_of(info.at("libraries"), [&](const nlohmann::json& library) {
      return library.at("name") == name && !library.at("loaded").get<std::string>().empty();
    })) << name;
  }
  EXPECT_EQ(info.at("isa").get<std::string>().rfind("x86-64-v", 0), 0U);
}

TEST(HelpProgram, ExitsWith0AndShowsTheCommands) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"train", "--help"},
                                                    {"evaluate", "--help"},
                                                    {"info", "--help"}}) {
    const ProgramResult result = successful(run_syncopate(arguments));
    EXPECT_TRUE(contains(result.out, "syncopate"));
  }
}

TEST(HelpProgram, ListsTheCommandsOnStandardErrorWhenTheCommandIsMissing) {
  const ProgramResult result = run_syncopate({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, run_syncopate({"--help"}).out);
}

TEST(HelpProgram, IsSilentWhereItsReaderClosesThePipe) {
  const ProgramResult result =
      successful(run_program({"/bin/sh", "-c", "\"$0\" train --help | true", SYNCOPATE_PROGRAM}));
  EXPECT_EQ(result.err, "");
}

TEST(TrainProgram, WarnsOfMoreThreadsThanCpus) {
  const ProgramResult result = successful(run_syncopate(as_words(
      "train --model mlp --data synthetic:1x8x8:4:64 --steps 1 --no-progress --threads 1024")));
  EXPECT_TRUE(contains(result.err, "--threads 1024 for 1 replica: this process may use"));
}

// The script of a bundle starts the program so.
TEST(AProgramThatTheLoaderStarts, KnowsItsFileAndFindsItsModules) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "there is no " << loader;
  const auto start = [&](const std::vector<std::string>& arguments) {
    return run_program(std::vector<std::string>{loader} + syncopate_command(arguments));
  };
  const ProgramResult script = start({"sbatch", "--strategy", "one-device", "--print"});
  EXPECT_TRUE(contains(script.out, "\nPROGRAM=" + syncopate_command({}).front() + "\n"));
  EXPECT_EQ(start({"info", "--json"}).out, run_syncopate({"info", "--json"}).out);
  successful(
      start(as_words("launch --workers 2 -- train --strategy multi-worker-mirrored --model mlp "
                     "--data synthetic:1x8x8:4 --steps 2")));
}

}  // namespace
}  // namespace syncopate::test
