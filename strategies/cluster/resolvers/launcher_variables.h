// Reads the environment variables of launchers: checks whether a set of variables is complete, and
// parses numbers with range checks.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// An upper limit for ranks and sizes, to detect typing errors.
constexpr int kMostTasks = 1 << 20;

// Returns the variable's value; nullopt if it is unset or empty. (Scripts may export empty
// variables.)
std::optional<std::string> filled(const Environment& environment, std::string_view variable);

// Returns the nonce that the user gives the job: the flag --nonce if it is set, else the variable
// SYNCOPATE_NONCE, else "". Used for tasks of every role.
std::string given_nonce(const std::string& flag, const Environment& environment);

// Returns whether all variables are set. If only some of them are set, adds a note that `source` is
// ignored.
bool has_all(const Environment& environment, std::string_view source,
             const std::vector<std::string_view>& variables, std::vector<std::string>& notes);

// Parses a whole number from least to most. `what` names the variable or flag in the message.
// Throws UsageError for any other text.
int number_within(std::string_view what, std::string_view text, int least, int most);

// Parses the value of a variable like number_within(); returns `otherwise` if the variable is unset
// or empty. Throws UsageError.
int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise);

// Throws UsageError unless `number`, an index from 0, is below `count`. In the message, `what`
// names the index and `count_name` names the variable or flag with the value `count`.
void require_below(std::string_view what, int number, std::string_view count_name, int count);

}  // namespace syncopate
