// Formats precision, recall and IoU of each class as text and as JSON, for the result of `train`,
// for metrics files, and for `syncopate evaluate`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "worker/train/confusion.h"

namespace syncopate {

// Joins the names of classes into the text of Progress::class_names, with a line per name: a name
// may have any other character, such as the '/' of "T-shirt/top".
std::string join_class_names(const std::vector<std::string>& names);
// Splits the text of join_class_names(). Returns no names if they are not those of `num_classes`
// classes, because each name after a missing one would belong to another class.
std::vector<std::string> split_class_names(const std::string& names, std::int64_t num_classes);

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
