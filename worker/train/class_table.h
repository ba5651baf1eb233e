// Formats precision, recall and IoU of each class as text and as JSON, for the result of `train`,
// for metrics files, and for `syncopate evaluate`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "worker/train/confusion.h"

namespace syncopate {

// Splits the text of Progress::class_names, such as "cat/dog", into the names of the classes.
std::vector<std::string> split_class_names(const std::string& names);

// Returns a table as text, with a header line and a line per class: samples (pixels for label
// maps), then precision, recall and IoU in percent, with "-" for 0 / 0. names: the names of the
// classes, or empty; a name is last in its line, because it may be long.
std::string class_table(std::span<const ClassCounts> classes, const std::vector<std::string>& names,
                        bool is_map);

// Returns an array with an object per class, which has the fields class, name (if there are names),
// samples, precision, recall and iou. A fraction of 0 / 0 is null.
nlohmann::ordered_json classes_as_json(std::span<const ClassCounts> classes,
                                       const std::vector<std::string>& names = {});

}  // namespace syncopate
