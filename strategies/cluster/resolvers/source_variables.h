// What the resolvers share: a launcher's variables, all there or not, and numbers in them that are
// right or refused.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"

namespace syncopate {

// More tasks than any machine room has: a slip of the keyboard.
constexpr int kMostTasks = 1 << 20;

// Nothing when it is unset or empty: a script's variable that was never filled says nothing.
std::optional<std::string> filled(const Environment& environment, std::string_view variable);

// True when all of them are filled. When only some are, a note says that `source` is ignored.
bool has_all(const Environment& environment, std::string_view source,
             std::initializer_list<std::string_view> variables, std::vector<std::string>& notes);

// `what` names the variable or flag in the message. Throws UsageError unless `text` is a whole
// number from least to most.
int parse_number(std::string_view what, std::string_view text, int least, int most);

// Of a variable; `otherwise` when it is unset or empty. Throws UsageError.
int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise);

// A task's number among `count`; `count_name` is what says how many there are. Throws UsageError.
void require_below(std::string_view what, int number, std::string_view count_name, int count);

}  // namespace syncopate
