// Runs `syncopate-bench step --devices cuda` on an emulated GPU, compared with a script that only
// prints times, and on a machine without a GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

ProgramResult run_step(const Arguments& more, const std::string& library_path) {
  const Arguments command =
      as_words("/usr/bin/env", "LD_LIBRARY_PATH=" + library_path, SYNCOPATE_BENCH,
               "step --model mlp --batch-size 2 --rounds 3 --steps-per-round 3");
  return run_program(command + more);
}

TEST(StepProgramOnAGpu, SetsItsFiguresBesideThePeersAndTheDevicesCeilings) {
  const TemporaryFolder scratch;
  const ProgramResult result = successful(run_step(
      as_words("--devices cuda:0 --precision bf16 --peer",
               std::string("sh ") + SYNCOPATE_FAKE_PEER + " well", "--json", scratch / "step.json"),
      SYNCOPATE_EMULATED_MODULE));
  EXPECT_TRUE(contains(result.out, "peer: a peer of straw", "of a large copy; 50.0% busy"));
  const auto step = nlohmann::json::parse(read_text(scratch / "step.json")).at(0);
  EXPECT_EQ(step.at("precision"), "bf16");
  EXPECT_EQ(step.at("gpu").at("busy"), 0.5);
  // In each of its turns, the fake peer reports steps of 0.5, 0.25 and 0.3 s. On a GPU, the steps
  // of a turn are averaged.
  EXPECT_NEAR(step.at("peer_step_seconds").at("median"), 0.35, 1e-9);
}

// On the emulated device any two events are a millisecond apart.
TEST(StepProgramOnAGpu, ListsTheTimeOfEachGroupOfOperations) {
  const TemporaryFolder scratch;
  const ProgramResult result =
      successful(run_step({"--devices", "cuda:0", "--profile", "--json", scratch / "step.json"},
                          SYNCOPATE_EMULATED_MODULE));
  EXPECT_TRUE(contains(result.out, "dense   backward  2       2.00"));
  const auto groups = nlohmann::json::parse(read_text(scratch / "step.json")).at(0).at("groups");
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups.at(1).at("kind"), "dense");
  EXPECT_NEAR(groups.at(1).at("forward_seconds"), 1e-3, 1e-9);
}

TEST(StepProgramOnAGpu, RefusesWhatIsAboutTheCpu) {
  expect_failure(run_step({"--devices", "cuda:0", "--no-fuse"}, SYNCOPATE_EMULATED_MODULE), 2,
                 {"--no-fuse"});
}

TEST(StepProgramWithoutAGpu, PrintsTheReasonAndFails) {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  const ProgramResult result = run_step({"--devices", "cuda:99"}, path == nullptr ? "" : path);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "GPU"));
}

}  // namespace
}  // namespace syncopate::test
