// Finds the name that a user probably meant: the nearest known name, or the name in this program
// for a word of TensorFlow, Horovod, PyTorch, torchrun or mpirun.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Returns the name with the fewest edits from `typed`; nullopt if there are too many edits for a
// typing error. Upper and lower case, and _ and -, count as equal. Source: Levenshtein 1966 (an
// insertion, deletion or replacement is one edit).
std::optional<std::string_view> nearest_name(std::string_view typed,
                                             const std::vector<std::string_view>& names);

// Returns a text such as "; did you mean 'adam'? Choose one of sgd, adam".
std::string suggest(std::string_view typed, const std::vector<std::string_view>& names);

// Like suggest(), for a value of `flag`, but also recognises names of other programs: for
// --strategy ps the text is "; did you mean 'parameter-server'? ...".
std::string suggest_value(std::string_view flag, std::string_view typed,
                          const std::vector<std::string_view>& names);

// Returns what the user should type instead of the unknown flag `typed`, such as "--devices cuda
// --replicas N" for --gpus; nullopt if there is no suggestion. flags: the known flags.
std::optional<std::string> flag_meant_by(std::string_view typed,
                                         const std::vector<std::string_view>& flags);

}  // namespace syncopate
