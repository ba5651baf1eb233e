// Reads the environment variables of launchers: checks whether a set of them is complete, and
// parses numbers with range checks.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// An upper bound for ranks and sizes, to catch typing errors.
constexpr int kMostTasks = 1 << 20;

// Returns the variable's value; nothing if it is unset or empty, as scripts export empty variables.
std::optional<std::string> filled(const Environment& environment, std::string_view variable);

// Returns the nonce that the user gives the job, for every role: the flag --nonce, else
// SYNCOPATE_NONCE, else "".
std::string given_nonce(const std::string& flag, const Environment& environment);

// Returns whether all variables are set. If only some are, notes that `source` is ignored.
bool has_all(const Environment& environment, std::string_view source,
             const std::vector<std::string_view>& variables, std::vector<std::string>& notes);

// Parses a whole number from least to most. `what` names the variable or flag in the message.
// Throws UsageError for any other text.
int parse_number(std::string_view what, std::string_view text, int least, int most);

// Parses the value of a variable; returns `otherwise` when it is unset or empty. Throws UsageError.
int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise);

// Checks that an index that counts from 0 is below `count`, the value of the variable or flag
// `count_name`. Throws UsageError.
void require_below(std::string_view what, int number, std::string_view count_name, int count);

}  // namespace syncopate
