// Tests synchronous strategies with several real processes: they give the same bits as replicas in
// one process, and a checkpoint of one strategy can be resumed with another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/end_to_end/support/checkpoint_values.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

Arguments network(const std::string& model) {
  if (model == "resnet20") {
    return as_words("--model", model, "--data synthetic:3x32x32:10:500 --batch-norm sync");
  }
  return {"--model", model, "--data", "synthetic:1x28x28:10:2000"};
}

class Scratch {
 public:
  // Trains until step number `steps` and returns the summary.
  nlohmann::json train(const Arguments& where, const Arguments& what, int steps,
                       const std::string& checkpoint_dir = "", const Arguments& more = {}) {
    const std::string metrics = dir_ / ("m" + std::to_string(runs_++) + ".jsonl");
    Arguments command = where;
    command = command + few_steps(steps) + Arguments{"--metrics", metrics};
    if (!checkpoint_dir.empty()) {
      command = command + Arguments{"--checkpoint-dir", dir_ / checkpoint_dir};
    }
    const ProgramResult result = successful(run_syncopate(command + what + more));
    if (result.exit_code != 0) return {};
    return summary_of(metrics);
  }
  std::vector<float> values(const std::string& checkpoint_dir) const {
    return newest_checkpoint_values(dir_ / checkpoint_dir);
  }

 private:
  TemporaryFolder dir_;
  int runs_ = 0;
};

Arguments workers(int count, const Arguments& more = {}) {
  return as_words("launch --workers", std::to_string(count),
                  "-- train --strategy multi-worker-mirrored") +
         more;
}
Arguments one_process(const std::string& strategy, int replicas) {
  return as_words("train --strategy", strategy, "--replicas", std::to_string(replicas),
                  "--share-devices");
}

class MultiWorkerMirrored : public testing::TestWithParam<std::string> {
 protected:
  Scratch scratch_;
};

TEST_P(MultiWorkerMirrored, OfOneWorkerIsOneDeviceBitForBit) {
  const auto alone = scratch_.train(one_process("one-device", 1), network(GetParam()), 4);
  const auto worker = scratch_.train(workers(1), network(GetParam()), 4);
  EXPECT_EQ(worker.at("weights_hash"), alone.at("weights_hash"));
  EXPECT_EQ(worker.at("train_loss"), alone.at("train_loss"));
  EXPECT_EQ(worker.at("test_loss"), alone.at("test_loss"));
}

// Collectives over shared memory, TCP and threads add in the same order.
TEST_P(MultiWorkerMirrored, HasTheBitsOfMirroredOverEitherTransport) {
  for (const int count : {2, 3, 4}) {
    const auto mirrored = scratch_.train(one_process("mirrored", count), network(GetParam()), 4);
    for (const char* transport : {"shm", "tcp"}) {
      const auto ring =
          scratch_.train(workers(count, {"--transport", transport}), network(GetParam()), 4);
      EXPECT_EQ(ring.at("weights_hash"), mirrored.at("weights_hash"))
          << count << " workers over " << transport;
      EXPECT_EQ(ring.at("test_loss"), mirrored.at("test_loss"));
      EXPECT_EQ(ring.at("replicas"), count);
      EXPECT_EQ(ring.at("samples"), 4 * 24);
    }
  }
}

TEST_P(MultiWorkerMirrored, OverMpiStaysWithOneDevice) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no mpirun on this machine";
  scratch_.train(one_process("one-device", 1), network(GetParam()), 10, "alone");
  for (const int count : {1, 2, 3, 4}) {
    const std::string folder = "mpi" + std::to_string(count);
    scratch_.train(workers(count, {"--collective", "mpi"}), network(GetParam()), 10, folder);
    // The tolerance is 1e-3, because MPI adds the f32 gradients of ten steps in another order.
    EXPECT_LE(relative_distance(scratch_.values(folder), scratch_.values("alone")), 1e-3)
        << count << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Each, MultiWorkerMirrored, testing::Values("mlp", "mnist-cnn", "resnet20"),
                         [](const auto& parameters) {
                           std::string name = parameters.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(WorkersWithSeveralReplicas, AreRanksOfOneCollective) {
  Scratch scratch;
  const auto mirrored = scratch.train(one_process("mirrored", 4), network("mnist-cnn"), 5);
  for (const char* transport : {"shm", "tcp"}) {
    const auto both =
        scratch.train(workers(2, {"--replicas", "2", "--share-devices", "--transport", transport}),
                      network("mnist-cnn"), 5);
    EXPECT_EQ(both.at("weights_hash"), mirrored.at("weights_hash")) << transport;
    EXPECT_EQ(both.at("replicas"), 4);
  }
}

TEST(ACheckpointOfFourWorkers, IsResumedByOneDeviceAndMirrored) {
  Scratch scratch;
  const Arguments what = network("resnet20");
  scratch.train(one_process("one-device", 1), what, 10, "alone");
  int number = 0;
  for (const auto& where : {one_process("one-device", 1), one_process("mirrored", 2),
                            one_process("central-storage", 2), workers(2)}) {
    const std::string folder = "moved" + std::to_string(number++);
    scratch.train(workers(4), what, 5, folder);
    const auto resumed = scratch.train(where, what, 10, folder, {"--resume"});
    EXPECT_EQ(resumed.at("steps"), 10);
    EXPECT_EQ(resumed.at("samples"), 10 * 24);
    // The tolerance is 1e-3: other numbers of replicas add the f32 gradients of ten steps in
    // another order.
    EXPECT_LE(relative_distance(scratch.values(folder), scratch.values("alone")), 1e-3) << folder;
  }
}

TEST(ARunOfTwoWorkers, ThatIsResumedHasTheBitsOfAnUninterruptedOne) {
  Scratch scratch;
  const Arguments what = {"--model", "resnet20", "--data", "synthetic:3x32x32:10:500"};
  scratch.train(workers(2), what, 4, "stopped", {"--checkpoint-every", "4"});
  const auto resumed =
      scratch.train(workers(2), what, 8, "stopped", {"--resume", "--checkpoint-every", "4"});
  const auto whole = scratch.train(workers(2), what, 8, "whole", {"--checkpoint-every", "4"});
  EXPECT_EQ(resumed.at("weights_hash"), whole.at("weights_hash"));
  EXPECT_EQ(resumed.at("test_loss"), whole.at("test_loss"))
      << "running statistics were averaged at the same steps";
}

TEST(AnHttpProxy, ChangesNothing) {
  Scratch scratch;
  Arguments launch = as_words(
      "launch --workers 2 --env http_proxy=http://127.0.0.1:9 --env HTTPS_PROXY=http://127.0.0.1:9 "
      "--env all_proxy=socks5://127.0.0.1:9 -- train --strategy multi-worker-mirrored --transport "
      "tcp");
  const auto behind = scratch.train(launch, network("mlp"), 3);
  const auto mirrored = scratch.train(one_process("mirrored", 2), network("mlp"), 3);
  EXPECT_EQ(behind.at("weights_hash"), mirrored.at("weights_hash"));
}

TEST(AStrategyOfOneProcess, RefusesFlagsForCommunicationBetweenProcesses) {
  for (const auto& [strategy, flag, value] :
       {std::tuple{"one-device", "--collective", "mpi"},
        std::tuple{"one-device", "--transport", "tcp"},
        std::tuple{"mirrored", "--collective", "mpi"}, std::tuple{"mirrored", "--transport", "shm"},
        std::tuple{"central-storage", "--transport", "tcp"}}) {
    const ProgramResult result = run_syncopate(as_words(
        "train --strategy", strategy, "--model mlp --data synthetic:1x8x8:4:256", flag, value));
    EXPECT_EQ(result.exit_code, 2) << strategy << " " << flag;
    EXPECT_EQ(result.err.rfind(std::string("syncopate: ") + flag + " " + value, 0), 0U)
        << result.err;
    EXPECT_TRUE(contains(result.err, strategy));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace syncopate::test
