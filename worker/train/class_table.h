// Shows how well a network tells each class from the others, as text and as JSON: the result of
// train, metrics files, and `syncopate evaluate`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "worker/train/confusion.h"

namespace syncopate {

// Returns the names in Progress::class_names of a checkpoint, such as "cat/dog".
std::vector<std::string> split_class_names(const std::string& names);

// Returns a line of heads and a line per class: samples (of label maps: pixels), precision, recall
// and IoU in percent, "-" for 0 / 0. names: by class, or empty; they come last in a line, because
// they may be long.
std::string class_table(std::span<const ClassCounts> classes, const std::vector<std::string>& names,
                        bool is_map);

// Returns an array with an object per class: class, name if there are names, samples, precision,
// recall, iou; null for 0 / 0.
nlohmann::ordered_json classes_as_json(std::span<const ClassCounts> classes,
                                       const std::vector<std::string>& names = {});

}  // namespace syncopate
