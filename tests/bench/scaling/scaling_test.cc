#include "bench/scaling/scaling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/scaling/scaling_page.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

TEST(ThreadsInAll, AreDealtOutEvenlyOrNotAtAll) {
  EXPECT_EQ(lanes_per_replica(4, 1), 4);
  EXPECT_EQ(lanes_per_replica(4, 2), 2);
  EXPECT_THROW(lanes_per_replica(2, 4), UsageError);
  EXPECT_THROW(lanes_per_replica(3, 2), UsageError);
}

TEST(BatchOfAReplica, IsTheUsualOneWhateverTheNumberOfReplicas) {
  EXPECT_EQ(batch_per_replica({}, 64, 1), 64);
  EXPECT_EQ(batch_per_replica({}, 64, 2), 64);
  EXPECT_EQ(batch_per_replica({.batch_size_per_replica = 32}, 64, 2), 32);
}

TEST(BatchOfAReplica, IsAShareOfTheGlobalOneWhenThatIsGiven) {
  EXPECT_EQ(batch_per_replica({.batch_size = 64}, 128, 1), 64);
  EXPECT_EQ(batch_per_replica({.batch_size = 64}, 128, 2), 32);
  EXPECT_THROW(batch_per_replica({.batch_size = 63}, 128, 2), UsageError);
}

using Words = std::vector<std::string>;

// Returns the error message that parse_scaling_grid() gives for these words.
std::string error_for(const Words& words) {
  return message_of<UsageError>([&] { parse_scaling_grid(words); });
}

TEST(GridWords, GiveThreadsAndReplicasAscendingInAnyOrder) {
  const ScalingGrid grid = parse_scaling_grid({"replicas=4,1,2", "threads=2,1"});
  EXPECT_EQ(grid.threads, (std::vector<int>{1, 2}));
  EXPECT_EQ(grid.replicas, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(parse_scaling_grid({"replicas=1,2"}).threads, std::vector<int>{1});
}

TEST(GridWords, ThatAreWrongAreRefusedInOneLineWithTheExpectedForm) {
  for (const auto& [words, expected] : std::vector<std::pair<Words, std::string>>{
           {{"thread=1,2"}, "expected threads=N,... or replicas=N,..."},
           {{"threads"}, "expected threads=N,... or replicas=N,..."},
           {{"1,2"}, "expected threads=N,... or replicas=N,..."},
           {{"threads="}, "expected whole numbers from 1"},
           {{"threads=0"}, "found '0'"},
           {{"threads=-1"}, "found '-1'"},
           {{"replicas=1,two"}, "found 'two'"},
           {{"replicas=1,"}, "found ''"},
           {{"replicas=1.5"}, "found '1.5'"},
           {{"replicas=99999999999"}, "found '99999999999'"},
           {{"replicas=2,1,2"}, "2 stands there twice"},
           {{"threads=1", "threads=2"}, "threads stands there twice"}}) {
    const std::string error = error_for(words);
    EXPECT_TRUE(contains(error, expected)) << words[0] << ": " << error;
    EXPECT_EQ(error.find("--grid " + words.back()), 0U) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(GridCombinations, BeginWithTheSmallestAndHaveOneReplicaOnce) {
  std::string text;
  for (const ScalingCombination& c :
       combinations_of({{1, 2}, {1, 2}}, {"mirrored", "multi-worker-mirrored"})) {
    text += c.strategy + " " + std::to_string(c.replicas) + "x" + std::to_string(c.threads) + "\n";
  }
  EXPECT_EQ(text,
            "one-device 1x1\none-device 1x2\n"
            "mirrored 2x1\nmirrored 2x2\n"
            "multi-worker-mirrored 2x1\nmulti-worker-mirrored 2x2\n");
}

TEST(GridCombinations, AreOfKnownStrategiesEachOnce) {
  EXPECT_THROW(combinations_of({{1}, {2}}, {"central-storage"}), UsageError);
  EXPECT_THROW(combinations_of({{1}, {2}}, {"mirrored", "mirrored"}), UsageError);
}

// Returns a table of measured rates: 100 samples/s on one CPU; with two replicas of two threads,
// 300 samples/s in one process and 200 in two processes.
ScalingTable example() {
  const auto row = [](const char* strategy, int tasks, int replicas, int threads, double rate) {
    return ScalingRow{.strategy = strategy,
                      .tasks = tasks,
                      .replicas = replicas,
                      .threads = threads,
                      .batch_size = 64 * replicas,
                      .samples_per_second = {rate, 0.9 * rate, 1.1 * rate},
                      .samples_per_second_per_round = {rate},
                      .utilisation = 0.5,
                      .speed_up = {rate / 100, 0.9 * rate / 100, 1.1 * rate / 100},
                      .is_oversubscribed = replicas * threads > 2};
  };
  return {.model = "mnist-cnn",
          .optimizer = "adam",
          .cpus = 2,
          .conditions = "foreign load: none",
          .rows = {row("one-device", 1, 1, 1, 100), row("one-device", 1, 1, 2, 180),
                   row("mirrored", 1, 2, 2, 300), row("multi-worker-mirrored", 2, 2, 2, 200)}};
}

TEST(ScalingEfficiency, IsSpeedUpPerRequestedCpu) {
  const ScalingTable table = example();
  EXPECT_DOUBLE_EQ(scaling_efficiency(1.0, table.rows[0], table.rows[0]), 1.0);
  EXPECT_DOUBLE_EQ(scaling_efficiency(1.8, table.rows[1], table.rows[0]), 0.9);
  EXPECT_DOUBLE_EQ(scaling_efficiency(3.0, table.rows[2], table.rows[0]), 0.75);
  // Here the efficiency is relative to the second row, which has two CPUs.
  EXPECT_DOUBLE_EQ(scaling_efficiency(1.5, table.rows[2], table.rows[1]), 0.75);
}

TEST(ScalingRowOfTwoProcesses, HasHalfOfTheCpusInEach) {
  const ScalingTable table = example();
  EXPECT_EQ(table.rows[2].cpus_per_task(), 4);
  EXPECT_EQ(table.rows[3].cpus_per_task(), 2);
}

TEST(ScalingTableCells, AreTheGivenTexts) {
  const Table cells = scaling_cells(example());
  ASSERT_EQ(cells.rows.size(), 4U);
  EXPECT_EQ(cells.rows[3].name, "multi-worker-mirrored");
  EXPECT_EQ(cells.rows[3].cells,
            (std::vector<std::string>{"1", "2", "2", "2", "cpu", "200 [180-220]", "300", "50",
                                      "2.00 [1.80-2.20]", "50"}));
  EXPECT_EQ(cells.rows[3].notes, Words{"oversubscribed"});
  EXPECT_TRUE(cells.rows[1].notes.empty()) << "two threads on two CPUs";
  EXPECT_EQ(cells.heads.size(), cells.rows[3].cells.size() + 1);
}

TEST(ScalingJson, HasTheNumbersOfTheTable) {
  const nlohmann::json document = scaling_json(example());
  const nlohmann::json& row = document.at("rows").at(3);
  EXPECT_EQ(row.at("tasks"), 2);
  EXPECT_EQ(row.at("cpus_per_task"), 2);
  EXPECT_EQ(row.at("seconds_per_pass"), 300.0);
  EXPECT_EQ(row.at("efficiency"), 0.5);
  EXPECT_EQ(row.at("oversubscribed"), true);
}

TEST(ScalingVerdict, NamesTheFastestAndReportsDisturbances) {
  ScalingTable table = example();
  EXPECT_EQ(scaling_verdict(table),
            "mnist-cnn: most samples per second, 300, with mirrored, 2 replicas x 2 threads: 3.00 "
            "times those of one-device, 1 replica x 1 thread, an efficiency of 75 %.");
  table.is_quiet = false;
  EXPECT_TRUE(contains(scaling_verdict(table), "NOT QUIET"));
}

TEST(ScalingPage, HasAxesWithUnitsALegendAndTheIdealDashed) {
  const std::string page = scaling_page({.command = "bench <x>", .tables = {example()}});
  for (const char* expected :
       {">throughput (samples/s)<", ">efficiency (%)<", ">replicas x threads (CPUs requested)<",
        ">mirrored, replicas of 2 threads<", ">multi-worker-mirrored, replicas of 2 threads<",
        "ideal: one-device, 1 replica x 1 thread", "stroke-dasharray=\"5 4\"",
        "all 2 CPUs; oversubscribed to the right", "bench &lt;x&gt;"}) {
    EXPECT_TRUE(contains(page, expected));
  }
}

TEST(ScalingPage, NeedsNoOtherFiles) {
  const std::string page = scaling_page({.tables = {example(), example()}});
  EXPECT_TRUE(lacks(page, "<script", "src=", "href="));
}

TEST(ScalingPage, OfOneCombinationHasATableAndNoPlots) {
  ScalingTable table = example();
  table.rows.resize(1);
  const std::string page = scaling_page({.tables = {table}});
  EXPECT_TRUE(contains(page, "<td>100<br/>"));
  EXPECT_FALSE(contains(page, "<figure>"));
}

}  // namespace
}  // namespace syncopate::bench
