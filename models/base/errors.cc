#include "models/base/errors.h"

#include <system_error>

namespace syncopate {

void check(bool condition, std::string_view what, SourceLocation where) {
  if (condition) return;
  throw InternalError(std::string(where.file) + ":" + std::to_string(where.line) +
                      ": this is a bug in syncopate: " + std::string(what));
}

std::string describe_errno(std::string_view action, std::string_view path, int error_number) {
  return std::string(action) + " " + std::string(path) + ": " +
         std::generic_category().message(error_number);
}

}  // namespace syncopate
