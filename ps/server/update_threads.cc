#include "ps/server/update_threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <string>

namespace syncopate::ps {

UpdateThreads::UpdateThreads(int threads, std::function<void()> on_events, Fail fail)
    : on_events_(std::move(on_events)), fail_(std::move(fail)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) {
      try {
        serve(stop);
      } catch (const std::exception& error) {
        fail_(error);
      }
    });
    pthread_setname_np(threads_.back().native_handle(), fmt::format("update-{}", i).c_str());
  }
}

UpdateThreads::~UpdateThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  queued_.notify_all();
}

void UpdateThreads::work_on(const std::shared_ptr<Shard>& shard, BucketId bucket, int helpers) {
  helpers = std::min(helpers, static_cast<int>(threads_.size()));
  {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < helpers; ++i) queue_.emplace_back(shard, bucket);
  }
  for (int i = 0; i < helpers; ++i) queued_.notify_one();
}

void UpdateThreads::serve(const std::stop_token& stop) {
  for (;;) {
    std::pair<std::shared_ptr<Shard>, BucketId> next;
    {
      std::unique_lock lock(mutex_);
      if (!queued_.wait(lock, stop, [&] { return !queue_.empty(); })) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    while (const auto piece = next.first->claim(next.second)) {
      if (next.first->update(*piece)) on_events_();
    }
  }
}

}  // namespace syncopate::ps
