// Counts the unreadable samples of a data set against the limit of --skip-bad-records.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace syncopate {

// Thread-safe.
class BadSamples {
 public:
  // At most `limit` samples may be bad, above 0.
  explicit BadSamples(std::int64_t limit) : limit_(limit) {}

  std::int64_t limit() const noexcept { return limit_; }
  // Logs why a sample is bad, once, and what is done about it: "replaced" or "left out".
  void note(const std::string& reason, std::string_view done);
  // Throws BadSampleError if `count` bad samples in `where`, "epoch 1", are more than the limit.
  void require_few(std::int64_t count, std::string_view where) const;

 private:
  const std::int64_t limit_;
  mutable std::mutex mutex_;
  std::set<std::string> noted_;  // guarded by mutex_
  std::string first_;            // the first that this task noted; guarded by mutex_
};

}  // namespace syncopate
