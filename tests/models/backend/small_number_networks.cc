// Networks whose targets are numbers: binary cross-entropy and mean squared error of vectors that
// fill a group of threads of the GPU, or more or less than that.
#include <fmt/format.h>

#include "tests/models/backend/small_networks.h"

namespace syncopate {

void append_losses_of_numbers(std::vector<SmallNetwork>& all) {
  const auto append = [&](std::string name, LossKind kind, int values) {
    GraphBuilder build(name);
    NodeId x = build.input({9}, {.dtype = DType::kF32});
    x = build.dense(build.relu(build.dense(x, "fc1", 12)), "fc2", values);
    all.push_back({std::move(name), build.finish(x, {.kind = kind})});
  };
  for (const int values : {1, 5, 8, 300}) {
    append(fmt::format("BinaryCrossEntropyOf{}", values), LossKind::kBinaryCrossEntropy, values);
    append(fmt::format("MeanSquaredErrorOf{}", values), LossKind::kMeanSquaredError, values);
  }
  GraphBuilder build("SamplesAsPredictions");
  const NodeId x = build.input({5}, {.dtype = DType::kF32});
  all.push_back({"SamplesAsPredictions", build.finish(x, {.kind = LossKind::kMeanSquaredError})});
}

}  // namespace syncopate
