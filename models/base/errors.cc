#include "models/base/errors.h"

#include <fmt/format.h>

#include <system_error>

#include "models/base/open_files.h"

namespace syncopate {

void check(bool condition, std::string_view what, SourceLocation where) {
  if (condition) return;
  throw InternalError(
      fmt::format("{}:{}: this is a bug in syncopate: expected: {}", where.file, where.line, what));
}

std::string describe_errno(std::string_view action, std::string_view path, int error_number) {
  return fmt::format("{} {}: {}{}{}", action, path, std::generic_category().message(error_number),
                     open_files_advice(error_number), file_size_advice(error_number));
}

}  // namespace syncopate
