// Lowers the number of files that the process of a test may open.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace syncopate {

// The limit is lower during the object's lifetime.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// A test without descriptors is skipped where this is set: UndefinedBehaviorSanitizer takes a type
// for wrong when it cannot open a file.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kNeedsDescriptors = "UndefinedBehaviorSanitizer needs to open files";
#else
constexpr const char* kNeedsDescriptors = nullptr;
#endif

}  // namespace syncopate
