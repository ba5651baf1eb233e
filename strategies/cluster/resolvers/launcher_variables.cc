#include "strategies/cluster/resolvers/launcher_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/errors.h"
#include "models/base/parse_number.h"

namespace syncopate {

std::optional<std::string> filled(const Environment& environment, std::string_view variable) {
  std::optional<std::string> value = environment.get(variable);
  if (value && value->empty()) value.reset();
  return value;
}

std::string given_nonce(const std::string& flag, const Environment& environment) {
  return flag.empty() ? filled(environment, "SYNCOPATE_NONCE").value_or("") : flag;
}

bool has_all(const Environment& environment, std::string_view source,
             const std::vector<std::string_view>& variables, std::vector<std::string>& notes) {
  std::vector<std::string> found;
  std::vector<std::string> missing;
  for (const std::string_view variable : variables) {
    (filled(environment, variable) ? found : missing).emplace_back(variable);
  }
  if (!found.empty() && !missing.empty()) {
    notes.push_back(fmt::format("{}: ignored, it is incomplete: {} {} set, {} {} not", source,
                                fmt::join(found, ", "), found.size() == 1 ? "is" : "are",
                                fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"));
  }
  return missing.empty();
}

int number_within(std::string_view what, std::string_view text, int least, int most) {
  const auto number = parse_number<int>(text);
  if (number && *number >= least && *number <= most) return *number;
  throw UsageError(
      fmt::format("{}={}: expected a whole number from {} to {}", what, text, least, most));
}

int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise) {
  const std::optional<std::string> text = filled(environment, variable);
  return text ? number_within(variable, *text, least, most) : otherwise;
}

void require_below(std::string_view what, int number, std::string_view count_name, int count) {
  if (number < count) return;
  throw UsageError(fmt::format("{}={}: expected a number below {}={}, since numbers start at 0",
                               what, number, count_name, count));
}

}  // namespace syncopate
