#include "worker/run/network_for_data.h"

#include "models/base/errors.h"

namespace syncopate {

Graph network_for_data(const std::string& model, const std::string& data_flag,
                       const DataSplits& data) {
  try {
    return build_network(model, {.sample_shape = data.train->sample_shape(),
                                 .classes = data.train->num_classes(),
                                 .input = {DType::kU8, data.mean, data.stddev}});
  } catch (const ShapeError& error) {
    throw UsageError("--model " + model + " does not fit --data " + data_flag + ": " +
                     error.what());
  }
}

}  // namespace syncopate
