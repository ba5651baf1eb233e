#include "strategies/cluster/resolvers/launcher_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "models/base/errors.h"

namespace syncopate {

std::optional<std::string> filled(const Environment& environment, std::string_view variable) {
  std::optional<std::string> value = environment.get(variable);
  if (value && value->empty()) value.reset();
  return value;
}

bool has_all(const Environment& environment, std::string_view source,
             std::initializer_list<std::string_view> variables, std::vector<std::string>& notes) {
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

int parse_number(std::string_view what, std::string_view text, int least, int most) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  throw UsageError(
      fmt::format("{}={}: expected a whole number from {} to {}", what, text, least, most));
}

int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise) {
  const std::optional<std::string> text = filled(environment, variable);
  return text ? parse_number(variable, *text, least, most) : otherwise;
}

void require_below(std::string_view what, int number, std::string_view count_name, int count) {
  if (number < count) return;
  throw UsageError(fmt::format("{}={}: expected a number below {}={}, since numbers start at 0",
                               what, number, count_name, count));
}

std::optional<ClusterSpec> read_numbers(const Environment& environment, std::string_view source,
                                        const NumberVariables& names,
                                        std::vector<std::string>& notes) {
  if (!has_all(environment, source, {names.rank, names.size}, notes)) return std::nullopt;
  ClusterSpec spec;
  spec.index = number_of(environment, names.rank, 0, kMostTasks, 0);
  spec.world_size = number_of(environment, names.size, 1, kMostTasks, 1);
  require_below(names.rank, spec.index, names.size, spec.world_size);
  spec.is_local_told = filled(environment, names.local_rank).has_value();
  spec.local_rank = number_of(environment, names.local_rank, 0, kMostTasks, 0);
  spec.local_size = number_of(environment, names.local_size, 1, kMostTasks, spec.local_rank + 1);
  require_below(names.local_rank, spec.local_rank, names.local_size, spec.local_size);
  return spec;
}

}  // namespace syncopate
