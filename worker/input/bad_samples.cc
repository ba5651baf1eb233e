#include "worker/input/bad_samples.h"

#include <fmt/format.h>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {

void BadSamples::note(const std::string& reason, std::string_view done) {
  {
    const std::lock_guard lock(mutex_);
    if (!noted_.insert(reason).second) return;
    if (first_.empty()) first_ = reason;
  }
  log(LogLevel::kWarning, fmt::format("a bad sample is {}: {}", done, reason));
}

void BadSamples::require_few(std::int64_t count, std::string_view where) const {
  if (count <= limit_) return;
  const std::lock_guard lock(mutex_);
  throw BadSampleError(fmt::format(
      "{} bad samples in {}, more than --skip-bad-records {}; {}", count, where, limit_,
      first_.empty() ? "the warnings of other tasks name them" : "one of them: " + first_));
}

}  // namespace syncopate
