// What somebody probably meant who mistyped a name: for the one line that an error has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// The name that fewest edits turn `typed` into, if these are few enough to be a slip.
// Source: Levenshtein 1966 (insert, delete, replace count one each).
std::optional<std::string_view> nearest_name(std::string_view typed,
                                             const std::vector<std::string_view>& names);

// "; did you mean 'adam'? Choose one of sgd, adam"
std::string suggest(std::string_view typed, const std::vector<std::string_view>& names);

}  // namespace syncopate
