// The jobs of two guides that users follow, with the flags of deploy/README.md on small data of the
// same layout: ResNet-50 with given weights on JPEGs of TensorFlow Datasets (Cassava), and OTBTF's
// network on its patches. They run under every strategy, and go on after they were killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/readme_jobs.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/record/record_folders.h"

namespace syncopate::test {
namespace {

Arguments pipeline() { return as_words("train --strategy pipeline --stages 2 --share-devices"); }

// The strategies whose updates are not those of two synchronous replicas.
std::vector<Arguments> other_strategies() {
  return {one_device(), pipeline(), parameter_servers({.workers = 2}, {"--consistency", "ssp"}),
          parameter_servers({.workers = 2}, {"--consistency", "async"})};
}

class Guides : public testing::Test {
 protected:
  // Trains, and returns the summary; an object without entries after a failure.
  nlohmann::json summary_of(const Arguments& where, const Arguments& what) {
    const Arguments cache = {"--cache-dir", runs_ / "cache"};
    return runs_.summary_of(where, what + cache);
  }
  void expect_same_bits(const Arguments& what) {
    expect_same_bits_under_synchronous_strategies(
        [&](const Arguments& where, const Arguments& more) {
          return summary_of(where, more).value("weights_hash", "");
        },
        what);
  }

  // Kills the run after `steps` steps, and expects that it then goes on to the same end.
  void expect_resumed_after_a_kill(const Arguments& where, const Arguments& what, int steps) {
    const Arguments run = where + what;
    const std::string expected = summary_of(run, {}).value("weights_hash", "");
    ASSERT_NE(expected, "");
    const Arguments kept = as_words("--checkpoint-dir", runs_ / "ck",
                                    "--resume --checkpoint-every 1 --cache-dir", runs_ / "cache");
    const std::string metrics = runs_ / "killed.jsonl";
    RunningProgram program(syncopate_command(
        run + kept + as_words("--metrics", metrics, "--log-every 1 --threads 1 --seed 7")));
    ASSERT_TRUE(program.wait_until_file_has(metrics, "\"event\":\"step\"", steps));
    program.send(SIGKILL);
    ASSERT_EQ(program.wait().ended_by_signal, SIGKILL) << "it ended before the kill";
    const ProgramResult resumed = runs_.train(run, kept);
    EXPECT_TRUE(contains(resumed.err, "resumed from"));
    EXPECT_EQ(runs_.summary().at("weights_hash"), expected);
  }

  TrainingRuns runs_;
};

// The weights are those of the whole network with 10 classes, whose classifier does not fit.
class CassavaGuide : public Guides {
 protected:
  void SetUp() override {
    write_tfds(folder(), {{"train", {5, 4}}, {"validation", {3}}, {"test", {2}}}, "tfrecord",
               TfdsPictures::kJpeg);
  }
  std::string folder() const { return runs_ / "cassava/0.1.0"; }
  Arguments job(const std::string& model, const std::string& epochs) {
    const std::string weights = runs_ / "weights.safetensors";
    successful(
        run_syncopate(as_words("train --model", model,
                               "--data synthetic:3x32x32:10:4 --batch-size 4 --steps 1 --optimizer "
                               "sgd --threads 1 --eval-every 0 --no-progress --checkpoint-dir",
                               runs_ / "weights")));
    successful(run_syncopate(as_words("export --checkpoint",
                                      runs_ / ("weights/" + names_in(runs_ / "weights").back()),
                                      weights)));
    return job_in_readme("resnet50", {{"--model", model},
                                      {"--data", "tfds:" + folder()},
                                      {"--image-size", "32"},
                                      {"--init-from", weights},
                                      {"--batch-size-per-replica", "2"},
                                      {"--epochs", epochs}});
  }
};

TEST_F(CassavaGuide, HasTheSameBitsUnderEverySynchronousStrategy) {
  expect_same_bits(job("resnet50", "1"));
}

TEST_F(CassavaGuide, TrainsOnOneDeviceAndAsynchronously) {
  const Arguments what = job("resnet50", "1");
  for (const Arguments& where : other_strategies()) {
    const ProgramResult result = successful(runs_.train(where, what));
    EXPECT_TRUE(contains((result.out + result.err),
                         "265 tensors; fresh: fc.0.weight [1016, 2048], fc.0.bias [1016], "
                         "fc.2.weight [3, 1016], fc.2.bias [3]; not used: fc.weight, fc.bias"))
        << result.out << result.err;
    const auto summary = runs_.summary();
    EXPECT_EQ(summary.at("steps"), 4) << "updates of 2 of 9 pictures: " << where.back();
    EXPECT_TRUE(summary.at("val_accuracy").is_number());
    EXPECT_EQ(runs_.lines("begin").front().at("head"), "dense:1016");
  }
}

TEST_F(CassavaGuide, GoesOnAfterAKill) {
  expect_resumed_after_a_kill(mirrored(2), job("resnet20", "15"), 7);
}

class OtbtfGuide : public Guides {
 protected:
  void SetUp() override {
    write_otbtf(runs_ / "patches", {.train = 17, .valid = 3, .test = 3, .side = 64, .channels = 4});
  }
  Arguments job(const std::string& epochs) const {
    return job_in_readme(
        "fcn", {{"--data", "otbtf:" + (runs_ / "patches").string()}, {"--epochs", epochs}});
  }
};

TEST_F(OtbtfGuide, HasTheSameBitsUnderEverySynchronousStrategy) { expect_same_bits(job("3")); }

TEST_F(OtbtfGuide, TrainsOnOneDeviceAndAsynchronously) {
  for (const Arguments& where : other_strategies()) {
    const auto summary = summary_of(where, job("3"));
    EXPECT_EQ(summary.at("steps"), 12) << "updates of 4 of 17 patches: " << where.back();
    EXPECT_EQ(summary.at("test_classes").size(), 2U);
    EXPECT_EQ(runs_.evaluations().back().at("val_classes"), summary.at("val_classes"));
  }
}

TEST_F(OtbtfGuide, GoesOnAfterAKill) { expect_resumed_after_a_kill(mirrored(2), job("30"), 7); }

TEST_F(OtbtfGuide, GoesOnAfterAKillOfAPipeline) {
  expect_resumed_after_a_kill(pipeline(), job("30"), 7);
}

TEST(JobsOfTheReadme, AreWrittenAsJobScripts) {
  const std::vector<Arguments> jobs = jobs_in_readme();
  EXPECT_GE(jobs.size(), 2U);
  for (Arguments job : jobs) {
    job.insert(job.begin() + 1, "--print");
    const ProgramResult result = successful(run_syncopate(job));
    EXPECT_TRUE(contains(result.out, "\n#SBATCH --gres=gpu:"));
    for (auto word = std::ranges::find(job, "--") + 1; word != job.end(); ++word) {
      // The script has the data in a variable, which users edit.
      const bool is_data = *std::prev(word) == "--data";
      const std::string place = is_data ? "\nDATA=" + *word + "\n" : " " + *word;
      EXPECT_TRUE(contains(result.out, place)) << *word << result.out;
    }
    const std::string train = result.out.substr(result.out.find("\nTRAIN=("));
    EXPECT_FALSE(contains(train.substr(0, train.find('\n', 1)), "--data")) << train;
  }
}

}  // namespace
}  // namespace syncopate::test
