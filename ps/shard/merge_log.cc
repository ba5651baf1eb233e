#include "ps/shard/merge_log.h"

#include <utility>

namespace syncopate::ps {

void MergeLog::add(std::vector<PushId> pushes) {
  if (followers_ == 0) return;
  const std::lock_guard lock(mutex_);
  merges_.push_back({.pushes = std::move(pushes)});
}

std::optional<std::vector<PushId>> MergeLog::find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = number - first_;
  return at < merges_.size() ? std::optional(merges_[at].pushes) : std::nullopt;
}

void MergeLog::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  ++merges_[number - first_].taken;
  while (!merges_.empty() && merges_.front().taken == followers_) {
    merges_.pop_front();
    ++first_;
  }
}

void MergeLog::clear() {
  const std::lock_guard lock(mutex_);
  first_ = 0;
  merges_.clear();
}

}  // namespace syncopate::ps
