#include "bench/step/workload.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "bench/step/workload_data.h"
#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate::bench {
namespace {

TEST(Workload, TrainsANetworkOfLabelMaps) {
  Workload workload = find_workload("fcn");
  workload.batch_size = 2;
  EXPECT_EQ(WorkloadTraining(workload, {}).run(2).size(), 2U);
}

TEST(Workload, TrainsANetworkWithDropout) {
  Workload workload = find_workload("mobilenet-v2");
  workload.batch_size = 2;
  workload.sample_shape = {32, 32, 3};
  // Batch norm over two samples is not stable at larger rates.
  EXPECT_EQ(WorkloadTraining(workload, {.learning_rate = 1e-6}).run(2).size(), 2U);
}

TEST(Workload, OfANetworkFileIsOnTheSamplesOfItsData) {
  const TemporaryFolder scratch;
  const std::string file = scratch / "net.json";
  std::ofstream(file) << R"({"name": "mine", "nodes": [
    {"op": "input"}, {"op": "flatten"}, {"op": "dense", "name": "fc", "features": "classes"},
    {"op": "softmax-cross-entropy"}]})";
  Workload workload = find_workload("file:" + file);
  workload.batch_size = 8;
  EXPECT_TRUE(
      contains(message_of<UsageError>([&] { build_graph(workload); }), "give --data as well"));
  const WorkloadData data{.flag = "synthetic:3x4x5:7:64", .run = {.cache_dir = scratch / "cache"}};
  workload = with_data(workload, data);
  EXPECT_EQ(build_graph(workload).num_classes(), 7);
  EXPECT_EQ(WorkloadTraining(workload, {}).run(3).size(), 3U);
}

TEST(Workload, OfTargetsThatAreNumbersTrains) {
  const TemporaryFolder scratch;
  std::ofstream(scratch / "net.json") << R"({"name": "mine", "nodes": [
    {"op": "input"}, {"op": "dense", "name": "fc", "features": "classes"}, {"op": "mean-squared-error"}]})";
  std::ofstream table(scratch / "table.csv");
  table << "a,b,y\n";
  for (int row = 0; row < 200; ++row) table << row % 7 << ',' << row % 3 << ',' << row % 5 << '\n';
  table.close();
  const WorkloadData data{.flag = "csv:" + (scratch / "table.csv").string() + ":targets=y",
                          .run = {.cache_dir = scratch / "cache"}};
  const Workload workload =
      with_data(find_workload("file:" + (scratch / "net.json").string()), data);
  EXPECT_EQ(WorkloadTraining(workload, {}).run(3).size(), 3U);
}

}  // namespace
}  // namespace syncopate::bench
