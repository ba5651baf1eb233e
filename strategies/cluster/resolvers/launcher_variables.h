// Reads the environment variables of launchers: whether a set of them is complete, numbers with
// range checks, and the rank and size variables that most launchers have under names of their own.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// An upper bound for ranks and sizes, to catch typing errors.
constexpr int kMostTasks = 1 << 20;

// The variable's value; nothing when it is unset or empty, since scripts export empty variables.
std::optional<std::string> filled(const Environment& environment, std::string_view variable);

// Returns whether all variables are set. When only some are, adds a note that `source` is ignored.
bool has_all(const Environment& environment, std::string_view source,
             std::initializer_list<std::string_view> variables, std::vector<std::string>& notes);

// Parses a whole number from least to most. `what` names the variable or flag in the message.
// Throws UsageError for any other text.
int parse_number(std::string_view what, std::string_view text, int least, int most);

// Parses the value of a variable; returns `otherwise` when it is unset or empty. Throws UsageError.
int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise);

// Checks that an index that counts from 0 is below `count`, the value of the variable or flag
// `count_name`. Throws UsageError.
void require_below(std::string_view what, int number, std::string_view count_name, int count);

// The names of a launcher's four variables.
struct NumberVariables {
  std::string_view rank;
  std::string_view size;
  std::string_view local_rank;
  std::string_view local_size;
};

// A ClusterSpec with rank, size and local place. Returns nothing when rank or size is not set; when
// only one of them is, adds a note that `source` is ignored. Throws UsageError for a wrong number.
std::optional<ClusterSpec> read_numbers(const Environment& environment, std::string_view source,
                                        const NumberVariables& names,
                                        std::vector<std::string>& notes);

}  // namespace syncopate
