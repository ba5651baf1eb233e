// Counts the unreadable samples of a data set and compares their number with the limit that
// --skip-bad-records gives.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace syncopate {

// Logs the bad samples of one data set, and throws an error when there are too many. Thread-safe.
class BadSamples {
 public:
  // limit: the largest number of samples that may be bad; above 0.
  explicit BadSamples(std::int64_t limit) : limit_(limit) {}

  std::int64_t limit() const noexcept { return limit_; }
  // Logs that a bad sample was found; logs each `reason` only once. reason: why the sample is bad.
  // done: what is done with the sample, "left out" or "replaced ...".
  void note(const std::string& reason, std::string_view done);
  // Throws BadSampleError if `count` is above the limit given to the constructor. count: the number
  // of bad samples in `where`, such as "epoch 1".
  void require_few(std::int64_t count, std::string_view where) const;

 private:
  const std::int64_t limit_;
  mutable std::mutex mutex_;
  std::set<std::string> noted_;  // guarded by mutex_
  std::string first_;            // the reason of the first note(); guarded by mutex_
};

}  // namespace syncopate
