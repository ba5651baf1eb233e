#include "strategies/cluster/resolvers/source_variables.h"

#include <charconv>

#include "models/base/errors.h"

namespace syncopate {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

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
    notes.push_back(std::string(source) + ": ignored, it is incomplete: " + joined(found) +
                    (found.size() == 1 ? " is" : " are") + " set, " + joined(missing) +
                    (missing.size() == 1 ? " is" : " are") + " not");
  }
  return missing.empty();
}

int parse_number(std::string_view what, std::string_view text, int least, int most) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least && number <= most) return number;
  throw UsageError(std::string(what) + "=" + std::string(text) + ": expected a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most));
}

int number_of(const Environment& environment, std::string_view variable, int least, int most,
              int otherwise) {
  const std::optional<std::string> text = filled(environment, variable);
  return text ? parse_number(variable, *text, least, most) : otherwise;
}

void require_below(std::string_view what, int number, std::string_view count_name, int count) {
  if (number < count) return;
  throw UsageError(std::string(what) + "=" + std::to_string(number) + ": expected a number below " +
                   std::string(count_name) + "=" + std::to_string(count) +
                   ", since numbers start at 0");
}

}  // namespace syncopate
