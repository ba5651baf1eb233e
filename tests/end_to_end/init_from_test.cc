// Tests of --init-from, --head and --normalize through the command line: under every strategy, in
// checkpoints, and where tasks or files do not agree.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/port.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

const Arguments kSmallRun =
    as_words("--model mlp --data synthetic:1x8x8:4:256 --threads 1 --no-progress");

// The fixture has a checkpoint of a trained network with a head, to which tests start runs.
class WeightsOfARun : public testing::Test {
 protected:
  void SetUp() override {
    successful(
        run_syncopate(Arguments{"train"} + kSmallRun +
                      as_words("--head dense:16 --normalize 0.5/0.25 --steps 40 --checkpoint-dir",
                               scratch_ / "ck")));
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "ck")) {
      if (entry.path().extension() == ".safetensors") file_ = entry.path().string();
    }
  }

  TemporaryFolder scratch_;
  std::string file_;
};

TEST_F(WeightsOfARun, AreTheFirstValuesUnderEveryStrategy) {
  const Arguments of_file = as_words("--head dense:16 --normalize 0.5/0.25 --init-from", file_,
                                     "--steps 1 --batch-size 64 --log-every 1 --metrics");
  const std::vector<Arguments> starts = {
      {"train"},
      {"train", "--strategy", "mirrored", "--replicas", "2"},
      {"train", "--strategy", "central-storage", "--replicas", "2"},
      as_words("launch --workers 2 -- train --strategy multi-worker-mirrored"),
      as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server --consistency "
               "sync")};
  double first = 0.0;
  for (const Arguments& start : starts) {
    const std::string metrics = scratch_ / "m.jsonl";
    const ProgramResult run =
        successful(run_syncopate(start + kSmallRun + of_file + Arguments{metrics}));
    EXPECT_TRUE(contains((run.out + run.err), "6 tensors; not used: 12 slots"))
        << run.out << run.err;
    const auto begin = metrics_lines(metrics, "begin").front();
    EXPECT_EQ(begin.at("head"), "dense:16");
    EXPECT_EQ(begin.at("normalize"), "0.5/0.25");
    const double loss = metrics_lines(metrics, "step").front().at("loss");
    if (first == 0.0) first = loss;
    EXPECT_NEAR(loss, first, 1e-4 * first) << start.back();
    EXPECT_LT(loss, 1.2);  // an untrained network has a loss of ln 4 = 1.39 or more
  }
}

TEST_F(WeightsOfARun, LeaveAnotherHeadFresh) {
  const ProgramResult run = successful(run_syncopate(
      Arguments{"train"} + kSmallRun + Arguments{"--steps", "1", "--init-from", file_}));
  EXPECT_TRUE(contains((run.out + run.err), "fresh: fc2.weight [4, 128], fc2.bias [4]"))
      << run.out << run.err;
}

TEST_F(WeightsOfARun, LeaveAHeadOfAnotherSizeFresh) {
  const ProgramResult run = successful(run_syncopate(
      Arguments{"train"} + kSmallRun + as_words("--head dense:8 --steps 1 --init-from", file_)));
  EXPECT_TRUE(
      contains((run.out + run.err), "fresh: fc2.0.weight [8, 128] (the file has [16, 128])"))
      << run.out << run.err;
}

TEST_F(WeightsOfARun, AreEvaluatedWithTheirHeadAndNormalization) {
  const ProgramResult run =
      successful(run_syncopate(Arguments{"evaluate", "--json", "--checkpoint", file_}));
  const Arguments of_file = {"--head", "dense:16", "--normalize", "0.5/0.25"};
  // A rate of nearly 0 leaves the weights as they are, so the run's evaluation is that of the file.
  successful(run_syncopate(Arguments{"train"} + kSmallRun + of_file +
                           as_words("--init-from", file_,
                                    "--steps 1 --optimizer sgd --learning-rate 1e-30 --metrics",
                                    scratch_ / "m.jsonl")));
  const double expected = metrics_lines(scratch_ / "m.jsonl", "summary").front().at("test_loss");
  const double found = nlohmann::json::parse(run.out).at("test_loss");
  EXPECT_NEAR(found, expected, 1e-5 * expected);
  const ProgramResult other =
      run_syncopate({"evaluate", "--checkpoint", file_, "--normalize", "none"});
  EXPECT_EQ(other.exit_code, 2);
  expect_one_line(other, {"--normalize none", "--normalize 0.5/0.25"});
}

TEST_F(WeightsOfARun, AreNotResumedWithAnotherHeadOrNormalization) {
  const Arguments resume =
      Arguments{"train"} + kSmallRun +
      as_words("--steps 50 --resume --checkpoint-dir", scratch_ / "ck", "--normalize 0.5/0.25");
  const ProgramResult none = run_syncopate(resume);
  EXPECT_EQ(none.exit_code, 2);
  expect_one_line(none, {"--head dense:16", "this run has no --head"});
  const ProgramResult other = run_syncopate(
      Arguments{"train"} + kSmallRun +
      as_words("--steps 50 --resume --checkpoint-dir", scratch_ / "ck", "--head dense:16"));
  EXPECT_EQ(other.exit_code, 2);
  expect_one_line(other, {"--normalize 0.5/0.25", "this run has no --normalize"});
  successful(run_syncopate(resume + Arguments{"--head", "dense:16"}));
}

TEST_F(WeightsOfARun, OfOtherBytesOnAnotherTaskAreRefused) {
  const std::string other = scratch_ / "other.safetensors";
  std::filesystem::copy_file(file_, other);
  std::filesystem::resize_file(other, std::filesystem::file_size(other) - 4);
  const Port port(false);
  const auto task = [&](int rank, const std::string& weights) {
    return syncopate_command(as_words("train --strategy multi-worker-mirrored --steps 1 --rank",
                                      std::to_string(rank), "--world-size 2 --rendezvous",
                                      port.endpoint(), "--rendezvous-timeout 20 --init-from",
                                      weights) +
                             kSmallRun);
  };
  for (const ProgramResult& result : run_all({task(0, file_), task(1, other)})) {
    expect_one_line(result, {"--init-from", "with CRC"});
  }
}

TEST_F(WeightsOfARun, OfAnotherHeadOnAnotherTaskAreRefused) {
  const Port port(false);
  const auto task = [&](int rank, const Arguments& flags) {
    return syncopate_command(as_words("train --strategy multi-worker-mirrored --steps 1 --rank",
                                      std::to_string(rank), "--world-size 2 --rendezvous",
                                      port.endpoint(), "--rendezvous-timeout 20") +
                             kSmallRun + flags);
  };
  for (const char* flag : {"--head", "--normalize"}) {
    const Arguments given = {flag, flag == std::string("--head") ? "dense:16" : "none"};
    for (const ProgramResult& result : run_all({task(0, given), task(1, {})})) {
      expect_one_line(result, {flag});
    }
  }
}

}  // namespace
}  // namespace syncopate::test
