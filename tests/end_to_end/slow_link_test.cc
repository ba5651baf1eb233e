// Tests `--link-delay` and `--link-rate` with real processes: training takes longer and ends with
// the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"

namespace syncopate::test {
namespace {

const Arguments kNetwork =
    as_words("--model mlp --data synthetic:1x28x28:10:960 --steps 20 --batch-size-per-replica 24");
const Arguments kSlow{"--link-delay", "5ms", "--link-rate", "200mbit"};

// A link of 200 Mbit/s needs this time, in seconds, to send all 101,770 f32 parameters.
constexpr double kSecondsOfAllBytes = 4.0 * 101770 / 25e6;
constexpr double kDelay = 0.005;

class SlowLink : public testing::TestWithParam<std::pair<const char*, Arguments>> {};

// On slow links each step needs at least two messages one after the other: a part of the sums
// before the rest, or gradients before values.
TEST_P(SlowLink, TakesItsTimeAndChangesNoBit) {
  TrainingRuns runs;
  const Arguments& where = GetParam().second;
  const auto plain = runs.summary_of(where, kNetwork + Arguments{"--transport", "tcp"});
  const auto slow = runs.summary_of(where, kNetwork + kSlow);
  EXPECT_EQ(slow.at("weights_hash"), plain.at("weights_hash"));
  EXPECT_EQ(slow.at("samples"), plain.at("samples"));
  EXPECT_GE(slow.at("seconds"), 20 * (2 * kDelay + kSecondsOfAllBytes) * 0.9)
      << "without: " << plain.at("seconds");
}

INSTANTIATE_TEST_SUITE_P(
    Of, SlowLink,
    testing::Values(std::pair{"ARing", multi_worker(2)}, std::pair{"ARingOfThree", multi_worker(3)},
                    std::pair{"AServerInStep", parameter_servers({.workers = 2, .servers = 1},
                                                                 {"--consistency", "sync"})},
                    std::pair{"AServerOfOneWorker", parameter_servers({.workers = 1, .servers = 1},
                                                                      {"--consistency", "async"})}),
    [](const auto& parameters) { return std::string(parameters.param.first); });

TEST(SlowLinks, ArePrintedWhenTrainingBegins) {
  TrainingRuns runs;
  const ProgramResult result = runs.train(multi_worker(2), kNetwork + kSlow);
  EXPECT_TRUE(contains(result.err, "links slowed on purpose: 5 ms one way, 25 MB/s each way"));
}

TEST(SlowLinks, AreRefusedByStrategiesWithoutLinks) {
  const Arguments ring = as_words("train --strategy multi-worker-mirrored --rank 0 --world-size 1");
  const std::pair<Arguments, std::vector<std::string>> mistakes[] = {
      {{"train", "--link-delay", "1ms"}, {"--link-delay 1ms", "one-device", "has no links"}},
      {{"train", "--strategy", "mirrored", "--link-rate", "1gbit"}, {"--link-rate 1gbit"}},
      {{"train", "--strategy", "central-storage", "--link-rate", "1gbit"}, {"central-storage"}},
      {ring + Arguments{"--link-delay", "1ms", "--transport", "shm"}, {"--transport shm"}},
      {ring + Arguments{"--link-delay", "1ms", "--collective", "mpi"}, {"--collective mpi"}},
      {ring + Arguments{"--link-delay", "1parsec"}, {"--link-delay 1parsec", "such as 1ms"}},
      {ring + Arguments{"--link-rate", "1"}, {"--link-rate 1", "such as 1gbit"}},
      {ring + Arguments{"--link-rate", "1kbit"}, {"--link-rate 1kbit", "1kb to"}}};
  for (const auto& [command, words] : mistakes) {
    const ProgramResult result = run_syncopate(command);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& word : words) {
      EXPECT_TRUE(contains(result.err, word)) << word << " in " << result.err;
    }
  }
}

}  // namespace
}  // namespace syncopate::test
