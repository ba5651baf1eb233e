// The process environment as a value: `main` reads it once, tests build their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables)
      : variables_(std::move(variables)) {}

  // A copy of what the process was started with.
  static Environment of_process();

  // Unset and empty are told apart: the latter is "".
  std::optional<std::string> get(std::string_view variable) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace syncopate
