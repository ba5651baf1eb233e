#include "models/base/deadline.h"

#include <fmt/format.h>

namespace syncopate {

std::string in_seconds(std::chrono::nanoseconds time) {
  const std::int64_t hundredths =
      std::chrono::round<std::chrono::duration<std::int64_t, std::centi>>(time).count();
  const std::int64_t rest = hundredths % 100;
  if (rest == 0) return fmt::format("{} s", hundredths / 100);
  if (rest % 10 == 0) return fmt::format("{}.{} s", hundredths / 100, rest / 10);
  return fmt::format("{}.{:02} s", hundredths / 100, rest);
}

}  // namespace syncopate
