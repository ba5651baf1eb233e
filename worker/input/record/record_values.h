// Reads samples of raw values from records: tfrecord:GLOB with --raw-shape.
#pragma once

#include <memory>
#include <string>

#include "worker/input/record/record_samples.h"

namespace syncopate {

// Reads a value of --raw-shape, "64x64x4:u16" or "784:f32": [H, W, C] or [F] of u8, u16 or f32.
// Throws UsageError for another form.
TensorSpec parse_raw_shape(const std::string& text);

// A data set of values in a feature: little-endian bytes, or for f32 also a list of floats. The
// index has the classes.
std::unique_ptr<Dataset> make_record_values(std::shared_ptr<const RecordShards> shards,
                                            const FeatureName& image, const TensorSpec& input,
                                            int num_classes);

}  // namespace syncopate
