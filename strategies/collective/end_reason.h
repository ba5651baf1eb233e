// Why a collective is over. The first reason wins and stays: whatever waits, now or later, throws
// it.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "models/base/file_descriptor.h"

namespace syncopate {

// Thread-safe.
class EndReason {
 public:
  EndReason();  // throws FileError: no descriptor left

  // Does nothing when there is a reason already.
  void set(std::string_view reason) noexcept;
  bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }
  std::string text() const;
  // Throws PeerError(text()) when it is set.
  void throw_if_set() const;
  // Readable from set() on: for poll().
  int descriptor() const noexcept { return event_.get(); }

 private:
  FileDescriptor event_;
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

}  // namespace syncopate
