#include "models/base/deadline.h"

namespace syncopate {

std::string in_seconds(std::chrono::nanoseconds time) {
  const std::int64_t hundredths =
      std::chrono::round<std::chrono::duration<std::int64_t, std::centi>>(time).count();
  std::string text = std::to_string(hundredths / 100);
  if (const std::int64_t rest = hundredths % 100; rest != 0) {
    text += "." + std::to_string(rest / 10);
    if (rest % 10 != 0) text += std::to_string(rest % 10);
  }
  return text + " s";
}

}  // namespace syncopate
