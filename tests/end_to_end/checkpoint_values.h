// Reads a checkpoint as any safetensors reader would.
#pragma once

#include <filesystem>
#include <vector>

namespace syncopate::test {

// All f32 elements of the parameters in the newest checkpoint of a folder, in the order of the
// file; no optimizer slots, no running statistics. Empty when there is none.
std::vector<float> newest_checkpoint_values(const std::filesystem::path& folder);

// The relative L2 distance of two networks' values, |found - expected| / |expected|; infinite where
// one has more values than the other.
double relative_distance(const std::vector<float>& found, const std::vector<float>& expected);

}  // namespace syncopate::test
