// Reads and checks class labels that users give as numbers, from 0 to the number of classes - 1.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "worker/input/array/npy_file.h"

namespace syncopate {

// The largest label that is accepted. A larger label is probably a mistake, such as an identifier
// in place of a class. The limit exists because the last layer of a network has a row of weights
// for each class.
inline constexpr std::int32_t kLargestLabel = 99999;

// Reads the labels of a file, which are [N] or [N, 1] of any integer type. Throws FileError naming
// path and byte for another type or shape, and for a label below 0 or above kLargestLabel.
std::vector<std::int32_t> read_npy_labels(const NpyFile& file);

// Logs a warning if some classes have no training sample. A mistyped label can cause this, because
// the largest label determines the number of classes. advice: the end of the message.
void warn_about_empty_classes(std::span<const std::int32_t> training_labels, std::int32_t classes,
                              std::string_view file, std::string_view advice = "");

}  // namespace syncopate
