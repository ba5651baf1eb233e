// Tests that comparisons can read the metrics lines that the trainer writes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "bench/compare/report/run_result.h"
#include "tests/support/temporary_folder.h"
#include "worker/train/metrics.h"

namespace syncopate::bench {
namespace {

TEST(TrainerLines, CanBeRead) {
  const TemporaryFolder folder;
  const auto file = folder / "lines";
  std::ofstream(file) << R"({"event":"run","label":"async","seed":1,"workers":2})"
                      << "\n";
  {
    const auto metrics = make_metrics_writer(file, true);
    metrics->write(StepMetrics{.step = 1, .loss = std::nan("")});
    metrics->write(
        EvalMetrics{.step = 2, .result = {.metric = {.value = 0.5}}, .trained_samples = 64});
    metrics->write(WorkerMetrics{.worker = 1, .steps = 2, .bytes_sent = 9});
    metrics->write(Summary{.steps = 2, .samples = 64, .weights_hash = "cafe"});
  }
  const auto run = read_run(file);
  ASSERT_TRUE(run.has_value());
  EXPECT_TRUE(std::isnan(run->training.at(0).loss));
  EXPECT_EQ(run->curve.at(0).samples, 64);
  EXPECT_EQ(run->curve.at(0).accuracy, 0.5);
  EXPECT_EQ(run->times.at(0).worker, 1);
  EXPECT_EQ(run->times.at(0).bytes_sent, 9);
  EXPECT_FALSE(run->times.at(0).peers_wait_seconds.has_value());
  EXPECT_EQ(run->summary.samples, 64);
  EXPECT_EQ(run->summary.weights_hash, "cafe");
}

}  // namespace
}  // namespace syncopate::bench
