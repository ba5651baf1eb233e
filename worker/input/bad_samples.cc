#include "worker/input/bad_samples.h"

#include <fmt/format.h>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {

void BadSamples::add(std::int64_t index, const std::string& reason) {
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    if (!indices_.insert(index).second) return;
    if (first_.empty()) first_ = reason;
    const auto count = static_cast<std::int64_t>(indices_.size());
    if (count > limit_) {
      throw FileError(fmt::format(
          "{} bad samples, more than --skip-bad-records {}; the first: {}; the last: {}", count,
          limit_, first_, reason));
    }
    line = fmt::format("bad sample {} of {} that are allowed, replaced by the next good one: {}",
                       count, limit_, reason);
  }
  log(LogLevel::kWarning, line);
}

}  // namespace syncopate
