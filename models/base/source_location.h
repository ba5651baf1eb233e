// Where a call was made, for error messages. clang 14 does not accept libstdc++ 12's
// std::source_location, so this is the same idea on the compiler's own builtins.
#pragma once

namespace syncopate {

struct SourceLocation {
  const char* file;
  int line;

  // As a default argument this names the caller's line.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}  // namespace syncopate
