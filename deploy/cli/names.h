// The name that a user probably meant: the nearest known one, or our name for a word of TensorFlow,
// Horovod, PyTorch, torchrun or mpirun.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// The name that the fewest edits make of `typed`, if they are few enough for a slip. Case and the
// difference between _ and - do not count as edits.
// Source: Levenshtein 1966 (an insertion, deletion or replacement is one edit).
std::optional<std::string_view> nearest_name(std::string_view typed,
                                             const std::vector<std::string_view>& names);

// "; did you mean 'adam'? Choose one of sgd, adam"
std::string suggest(std::string_view typed, const std::vector<std::string_view>& names);

// The text of suggest() for a value of `flag`, where the value may be another program's name:
// "; did you mean 'parameter-server'? ..." for --strategy ps.
std::string suggest_value(std::string_view flag, std::string_view typed,
                          const std::vector<std::string_view>& names);

// What to type instead of the unknown flag `typed`, such as "--devices cuda --replicas N" for
// --gpus. `flags` are the known ones.
std::optional<std::string> flag_meant_by(std::string_view typed,
                                         const std::vector<std::string_view>& flags);

}  // namespace syncopate
