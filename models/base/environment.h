// The environment variables of a process as a value. `main` reads them once; tests make an
// Environment of their own.
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

  // Returns the value of an environment variable; nullopt when the variable is unset.
  std::optional<std::string> get(std::string_view variable) const;

  // Returns all environment variables, for starting another process.
  const Variables& variables() const noexcept { return variables_; }

 private:
  Variables variables_;
};

}  // namespace syncopate
