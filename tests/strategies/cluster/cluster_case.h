// Resolves a ClusterSpec from an environment that a test writes down.
#pragma once

#include <map>
#include <string>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/resolvers.h"

namespace syncopate::test {

using Variables = std::map<std::string, std::string, std::less<>>;

inline Variables operator+(Variables left, const Variables& right) {
  for (const auto& [name, value] : right) left[name] = value;
  return left;
}

inline ClusterSpec resolve(const Variables& variables, const ClusterFlags& flags = {}) {
  return resolve_cluster(flags, Environment(variables));
}

// Returns the text of the UsageError that resolve() throws; "" when it throws none.
inline std::string refusal(const Variables& variables, const ClusterFlags& flags = {}) {
  try {
    resolve(variables, flags);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// Returns all notes of the ClusterSpec, one per line.
inline std::string notes_of(const ClusterSpec& spec) {
  std::string text;
  for (const std::string& note : spec.notes) text += note + "\n";
  return text;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace syncopate::test
