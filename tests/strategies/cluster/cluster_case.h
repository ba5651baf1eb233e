// Resolves a ClusterSpec from an environment that a test writes down.
#pragma once

#include <map>
#include <string>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

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
  return message_if_thrown<UsageError>([&] { resolve(variables, flags); });
}

// Returns all notes of the ClusterSpec, one per line.
inline std::string notes_of(const ClusterSpec& spec) {
  std::string text;
  for (const std::string& note : spec.notes) text += note + "\n";
  return text;
}

}  // namespace syncopate::test
