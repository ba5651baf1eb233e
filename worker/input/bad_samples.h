// The samples of a data set that could not be read, within a limit that the user gave.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace syncopate {

// Thread-safe.
class BadSamples {
 public:
  // At most `limit` samples of one task may be bad.
  explicit BadSamples(std::int64_t limit) : limit_(limit) {}

  bool are_allowed() const noexcept { return limit_ > 0; }
  // Records a bad sample, and logs a warning the first time. Throws FileError, which names the
  // first bad sample too, when there are more than the limit.
  void add(std::int64_t index, const std::string& reason);

 private:
  const std::int64_t limit_;
  std::mutex mutex_;
  std::set<std::int64_t> indices_;  // guarded by mutex_
  std::string first_;               // the reason of the first one; guarded by mutex_
};

}  // namespace syncopate
