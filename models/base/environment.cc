#include "models/base/environment.h"

#include <unistd.h>

namespace syncopate {

Environment Environment::of_process() {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(std::string_view variable) const {
  const auto found = variables_.find(variable);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

}  // namespace syncopate
