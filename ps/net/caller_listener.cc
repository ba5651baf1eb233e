#include "ps/net/caller_listener.h"

#include <fmt/format.h>

#include <chrono>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {

std::optional<Connection> CallerListener::accept(std::size_t callers) {
  lacks_descriptors_ = false;
  if (is_full(callers)) return std::nullopt;
  try {
    return listener_.accept(Deadline::after(std::chrono::milliseconds(0)));
  } catch (const FileError& error) {
    lacks_descriptors_ = true;
    if (!std::exchange(has_warned_, true)) {
      log(LogLevel::kWarning,
          fmt::format("{}; until then new connections have to wait", error.what()));
    }
    return std::nullopt;
  }
}

}  // namespace syncopate
