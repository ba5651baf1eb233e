// The environment variables of a process as a value: `main` reads them once, tests make their own.
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

  // Returns a copy of the environment variables this process was started with.
  static Environment of_process();

  // Returns an environment variable: nullopt when it is unset, "" when it is set to an empty text.
  std::optional<std::string> get(std::string_view variable) const;

  // Returns all environment variables, to start another process with.
  const Variables& variables() const noexcept { return variables_; }

 private:
  Variables variables_;
};

}  // namespace syncopate
