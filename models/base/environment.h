// The process environment as a value: `main` reads it once, tests build their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

class Environment {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  Environment() = default;
  explicit Environment(Variables variables) : variables_(std::move(variables)) {}

  // A copy of what the process was started with.
  static Environment of_process();

  // Unset and empty are told apart: the latter is "".
  std::optional<std::string> get(std::string_view variable) const;

  // All of them: to start a process with.
  const Variables& variables() const noexcept { return variables_; }

 private:
  Variables variables_;
};

}  // namespace syncopate
