// Reads samples of raw values from records, for tfrecord:GLOB with --raw-shape.
#pragma once

#include <memory>
#include <string>

#include "worker/input/record/record_samples.h"

namespace syncopate {

// Parses a value of --raw-shape, such as "64x64x4:u16" or "784:f32". The shape is [H, W, C] or [F],
// the type u8, u16 or f32. Throws UsageError for text in another form.
TensorSpec parse_raw_shape(const std::string& text);

// Makes a data set of the values in a feature, which are little-endian bytes, or for f32 also a
// list of floats. The index of `shards` has the classes.
std::unique_ptr<Dataset> make_record_values(std::shared_ptr<const RecordShards> shards,
                                            const FeatureName& image, const TensorSpec& input,
                                            int num_classes);

}  // namespace syncopate
