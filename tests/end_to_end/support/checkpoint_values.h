// Reads the values of a checkpoint in the way of any safetensors reader.
#pragma once

#include <filesystem>
#include <vector>

namespace syncopate::test {

// Returns all f32 elements of the parameters in the newest checkpoint of a folder, in the order of
// the file, without optimizer slots and running statistics. Empty if the folder has no checkpoint.
std::vector<float> newest_checkpoint_values(const std::filesystem::path& folder);

// Returns the relative L2 distance of two networks' values,
// found - expected
// /
// expected
// ; infinite if their numbers of values differ.
double relative_distance(const std::vector<float>& found, const std::vector<float>& expected);

}  // namespace syncopate::test
