// The memory that plan predicts of a stage, compared with that of a task.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/graph/graph_text.h"
#include "strategies/pipeline/stages.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

constexpr int kMicroBatches = 4;
constexpr std::int64_t kSamples = 256;  // of a micro-batch

// Eight dense layers of this width.
Graph dense_layers(std::int64_t width) {
  GraphBuilder network("dense");
  NodeId x = network.flatten(
      network.input({32, 32, 1}, {.dtype = DType::kU8, .mean = {0.0F}, .stddev = {1.0F}}));
  for (int layer = 0; layer < 8; ++layer) {
    x = network.relu(network.dense(x, "fc" + std::to_string(layer), width, Init::kHeUniform));
  }
  return network.finish(network.dense(x, "classes", 10));
}

// Trains the network in two stages that are tasks. Returns the peak memory of the first.
std::int64_t peak_memory_of_first_stage(const Graph& network) {
  TrainingRuns runs;
  const std::string file = runs / "network.json";
  std::ofstream(file) << to_network_file(network);
  const nlohmann::json summary = runs.summary_of(
      as_words("launch --workers 2 -- train --strategy pipeline"),
      as_words("--model", "file:" + file,
               "--data synthetic:1x32x32:10:4096 --optimizer adam --accumulate",
               std::to_string(kMicroBatches), "--batch-size-per-replica", std::to_string(kSamples),
               "--steps 3 --eval-every 0 --threads 1 --no-progress"));
  return summary.at("peak_memory_bytes").get<std::int64_t>();
}

// A narrow network has the memory of the program, of its libraries and of the samples. The stage
// takes less than is predicted where the backend fuses operations, and more for what oneDNN packs.
TEST(PlanOfAPipeline, PredictsTheMemoryOfATask) {
  const Graph wide = dense_layers(1024);
  const std::vector<Stage> stages = cut_into_stages(wide, 2);
  constexpr int kSlotsOfAdam = 2;
  const auto predicted =
      static_cast<double>(memory_of_stage(stages, 0, kMicroBatches, kSamples, kSlotsOfAdam).all());
  const auto measured = static_cast<double>(peak_memory_of_first_stage(wide) -
                                            peak_memory_of_first_stage(dense_layers(8)));
  EXPECT_NEAR(measured / predicted, 1.0, 0.2) << measured << " bytes, predicted " << predicted;
}

}  // namespace
}  // namespace syncopate::test
