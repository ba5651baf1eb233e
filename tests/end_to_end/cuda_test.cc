// Tests training on GPUs through the program, with every strategy and as many replicas as fit on
// one GPU. The test is linked once for a real GPU and once for an emulated GPU, on which networks
// are small.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/checkpoint_values.h"
#include "tests/end_to_end/support/gpu_program.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments what_is_trained(int steps, const std::string& folder) {
  return few_steps(steps) +
         as_words("--model mlp --data synthetic:1x12x12:10:480 --checkpoint-dir", folder);
}

class OnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_fewer_gpus_than(1); !why.empty()) GTEST_SKIP() << why;
  }

  // Trains ten steps of 24 samples, and returns the parameter values after the last step.
  std::vector<float> train(const Arguments& where, const Arguments& more = {}) {
    const std::string folder = dir_ / ("ck" + std::to_string(runs_++));
    const ProgramResult result =
        successful(run_on_gpus(where + what_is_trained(10, folder) + more));
    output_ = result.err;
    return newest_checkpoint_values(folder);
  }

  TemporaryFolder dir_;
  int runs_ = 0;
  std::string output_;  // the output of the last run
};

const Arguments kOnCuda{"--devices", "cuda:0", "--deterministic"};

const Arguments kTwoReplicas = as_words("train --strategy mirrored --replicas 2 --share-devices");
const Arguments kTwoTasks =
    as_words("launch --workers 2 -- train --strategy multi-worker-mirrored");

Arguments one_device(const Arguments& devices) {
  return Arguments{"train", "--strategy", "one-device"} + devices;
}

TEST_F(OnAGpu, NamesItsDevice) {
  train(one_device(kOnCuda));
  EXPECT_TRUE(contains(output_, "cuda:0, "));
}

TEST_F(OnAGpu, TrainsAsTheCpuDoes) {
  const std::vector<float> cpu = train(one_device({}));
  const std::vector<float> gpu = train(one_device(kOnCuda));
  ASSERT_EQ(cpu.size(), gpu.size());
  // The tolerance is 1e-3, because the GPU adds in another order in each of the ten steps.
  EXPECT_LE(relative_distance(gpu, cpu), 1e-3);
}

TEST_F(OnAGpu, GivesTheSameBitsTwice) {
  EXPECT_EQ(train(one_device(kOnCuda)), train(one_device(kOnCuda)));
}

TEST_F(OnAGpu, ReplicasOfOneGpuTrainAsOneReplicaDoes) {
  const std::vector<float> one = train(one_device(kOnCuda));
  for (const char* strategy : {"mirrored", "central-storage"}) {
    for (const char* replicas : {"1", "2", "4"}) {
      const std::vector<float> several =
          train(as_words("train --strategy", strategy, "--replicas", replicas, "--share-devices") +
                kOnCuda);
      ASSERT_EQ(one.size(), several.size()) << strategy;
      EXPECT_LE(relative_distance(several, one), 1e-3) << strategy << " x " << replicas;
      if (std::string(replicas) == "1") {
        EXPECT_EQ(one, several) << strategy;
      }
    }
  }
}

// Replicas as threads on one GPU sum gradients on the GPU. Replicas as processes on one GPU sum on
// the host and update on the GPU.
TEST_F(OnAGpu, SumsAndUpdatesThereWithTheBitsOfTheHost) {
  const std::vector<float> there =
      train(as_words("train --strategy mirrored --replicas 3 --share-devices") + kOnCuda);
  const std::vector<float> on_the_host =
      train(as_words("launch --workers 3 -- train --strategy multi-worker-mirrored") + kOnCuda);
  EXPECT_EQ(there, on_the_host);
}

TEST_F(OnAGpu, ReplicasResumeACheckpointBitForBit) {
  const std::vector<float> uninterrupted = train(kTwoReplicas + kOnCuda);
  const std::string folder = dir_ / "stopped";
  successful(run_on_gpus(kTwoReplicas + kOnCuda + what_is_trained(4, folder)));
  successful(
      run_on_gpus(kTwoReplicas + kOnCuda + what_is_trained(10, folder) + Arguments{"--resume"}));
  EXPECT_EQ(uninterrupted, newest_checkpoint_values(folder));
}

// Replicas with a GPU each sum gradients by NCCL. Two real GPUs use the real NCCL; emulated GPUs
// use an NCCL that sums in memory.
TEST_F(OnAGpu, ReplicasWithAGpuEachTrainAsOneReplicaDoes) {
  if (const std::string why = why_fewer_gpus_than(2); !why.empty()) GTEST_SKIP() << why;
  const std::vector<float> one = train(one_device(kOnCuda));
  for (const char* collective : {"nccl", "auto"}) {
    const std::vector<float> several =
        train(as_words("train --strategy mirrored --replicas 2 --devices cuda:0,cuda:1 "
                       "--share-devices --deterministic --collective",
                       collective));
    ASSERT_EQ(one.size(), several.size());
    EXPECT_LE(relative_distance(several, one), 1e-3) << collective;
  }
}

TEST_F(OnAGpu, OneReplicaConnectsToItselfOverNccl) {
  EXPECT_EQ(train(one_device(kOnCuda)),
            train(Arguments{"train", "--strategy", "mirrored", "--collective", "nccl"} + kOnCuda));
}

TEST_F(OnAGpu, NcclIsRefusedWhereReplicasShareAGpu) {
  expect_failure(
      run_on_gpus(as_words("train --strategy mirrored --replicas 2 --share-devices --collective "
                           "nccl --no-progress") +
                  kOnCuda),
      2, {"--collective nccl: replicas 0 and 1 share a GPU"});
}

// Trains two epochs with an evaluation after each, and returns the test loss of the last
// evaluation.
double evaluated(const Arguments& how, const std::string& batch_norm, const std::string& metrics) {
  const ProgramResult result = successful(
      run_on_gpus(how + as_words("--devices cuda:0 --deterministic --batch-norm", batch_norm,
                                 "--model resnet20 --data synthetic:3x8x8:4:32 --batch-size 8 "
                                 "--steps 8 --threads 1 --no-progress --metrics",
                                 metrics)));
  return result.exit_code == 0 ? summary_of(metrics).at("test_loss").get<double>() : 0.0;
}

// Batch statistics of replicas are summed on the host in the middle of a forward pass.
TEST_F(OnAGpu, ReplicasNormaliseOverTheWholeBatch) {
  const double one = evaluated({"train", "--strategy", "one-device"}, "sync", dir_ / "one");
  const double two = evaluated(kTwoReplicas, "sync", dir_ / "two");
  EXPECT_NEAR(one, two, 1e-2 * one);
}

// Running statistics are copied to the host, averaged before an evaluation, and copied back to the
// GPU.
TEST_F(OnAGpu, ReplicasAverageTheirStatistics) {
  const double threads = evaluated(kTwoReplicas, "local", dir_ / "threads");
  const double tasks = evaluated(kTwoTasks, "local", dir_ / "tasks");
  EXPECT_EQ(threads, tasks);
}

TEST_F(OnAGpu, TasksThatShareOneGpuTrainAsOneReplicaDoes) {
  const std::vector<float> one = train(one_device(kOnCuda));
  const std::vector<float> ring = train(kTwoTasks + kOnCuda);
  ASSERT_EQ(one.size(), ring.size());
  EXPECT_TRUE(contains(output_, "summed there: replicas 0 and 1 share a GPU"));
  EXPECT_LE(relative_distance(ring, one), 1e-3);
  const std::vector<float> served =
      train(as_words("launch --workers 2 --servers 2 -- train --strategy parameter-server "
                     "--consistency sync") +
            kOnCuda);
  ASSERT_EQ(one.size(), served.size());
  EXPECT_LE(relative_distance(served, one), 1e-3);
}

TEST_F(OnAGpu, AsynchronousWorkersTrainEverySample) {
  const Arguments what = as_words(
      "--devices cuda:0 --model mlp --data synthetic:1x12x12:10:480 --batch-size-per-replica 16 "
      "--epochs 2 --no-progress --metrics",
      dir_ / "m.jsonl");
  successful(run_on_gpus(parameter_servers({.workers = 2, .servers = 1}, what)));
  EXPECT_EQ(summary_of(dir_ / "m.jsonl").at("samples"), 960);
}

TEST_F(OnAGpu, TrainsConvolutionsInBf16) {
  const ProgramResult result = successful(run_on_gpus(
      as_words("train --devices cuda:0 --precision bf16 --model mnist-cnn --data "
               "synthetic:1x12x12:10:320 --batch-size 16 --steps 20 --no-progress --metrics",
               dir_ / "m.jsonl")));
  const auto summary = summary_of(dir_ / "m.jsonl");
  EXPECT_TRUE(std::isfinite(summary.at("train_loss").get<double>()));
  if (is_emulated()) {
    EXPECT_EQ(summary.at("gpu_utilisation"), 0.5);
    EXPECT_TRUE(contains(result.out, "GPU             50% busy"));
  }
}

// Each replica determines its own loss scale, so the bits are equal only with one replica.
TEST_F(OnAGpu, TrainsInFp16UnderEveryStrategyAsInF32) {
  const std::vector<float> expected = train(one_device(kOnCuda));
  const Arguments in_fp16 = kOnCuda + Arguments{"--precision", "fp16"};
  const std::vector<float> one = train(one_device(in_fp16));
  EXPECT_LE(relative_distance(one, expected), 2e-2);
  for (const char* strategy : {"mirrored", "central-storage"}) {
    const std::vector<float> several =
        train(as_words("train --strategy", strategy, "--replicas 2 --share-devices") + in_fp16);
    EXPECT_LE(relative_distance(several, expected), 2e-2) << strategy;
  }
}

TEST_F(OnAGpu, ResumesInFp16WithTheBitsOfAnUninterruptedRun) {
  const auto values_after = [&](int steps, const std::string& folder, const Arguments& more = {}) {
    successful(run_on_gpus(Arguments{"train", "--precision", "fp16", "--log-every", "1"} + more +
                           kOnCuda + what_is_trained(steps, dir_ / folder) +
                           Arguments{"--metrics", dir_ / "m.jsonl"}));
    const auto last = metrics_lines(dir_ / "m.jsonl", "step").back();
    EXPECT_EQ(last.at("loss_scale"), 65536.0);
    EXPECT_EQ(last.at("skipped_steps"), 0);
    return newest_checkpoint_values(dir_ / folder);
  };
  const std::vector<float> whole = values_after(6, "whole");
  values_after(3, "parts");
  EXPECT_EQ(values_after(6, "parts", {"--resume"}), whole);
  const std::filesystem::path folder = dir_ / "parts";
  EXPECT_TRUE(
      contains(read_text(folder / names_in(folder).back()), R"("loss_scale_good_steps":"6")"));
}

TEST_F(OnAGpu, LearnsDigitsIn16Bits) {
  for (const char* precision : {"bf16", "fp16"}) {
    successful(
        run_on_gpus(as_words("train --devices cuda:0 --precision", precision,
                             "--model mlp --data digits --batch-size 64 --steps 100 --optimizer "
                             "adam --seed 3 --no-progress --metrics",
                             dir_ / "digits.jsonl")));
    EXPECT_GE(summary_of(dir_ / "digits.jsonl").at("test_accuracy").get<double>(), 0.8)
        << precision;
  }
}

TEST_F(OnAGpu, DoctorAcceptsAJobThatSharesItOnPurpose) {
  const ProgramResult result = run_on_gpus(
      as_words("launch --workers 2 -- doctor --strategy multi-worker-mirrored --devices cuda:0 "
               "--model mlp --data synthetic:1x12x12:10:480 --threads 1 --share-devices"));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_FALSE(contains(result.out, "GPUs"));
}

TEST_F(OnAGpu, ListsTheGpus) {
  expect_failure(run_on_gpus({"train", "--devices", "cuda:99"}), 2, {"cuda:99: ", "visible here"});
}

}  // namespace
}  // namespace syncopate::test
