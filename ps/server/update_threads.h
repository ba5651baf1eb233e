// Threads that update the variables of a shard when there is too much work for the data thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ps/shard/shard.h"

namespace syncopate::ps {

// A pool of update threads. Thread-safe. Idle threads sleep.
class UpdateThreads {
 public:
  using Fail = std::function<void(const std::exception& error)>;

  // Starts this number of threads. `on_events` is called by an update thread when a shard has
  // events for take_events(). `fail` is called with the error that ends a thread.
  UpdateThreads(int threads, std::function<void()> on_events, Fail fail);
  UpdateThreads(const UpdateThreads&) = delete;
  UpdateThreads& operator=(const UpdateThreads&) = delete;
  ~UpdateThreads();  // discards queued work

  // Lets up to `helpers` threads work on the bucket until no work is due on it. Returns at once.
  void work_on(const std::shared_ptr<Shard>& shard, BucketId bucket, int helpers);

 private:
  void serve(const std::stop_token& stop);

  const std::function<void()> on_events_;
  const Fail fail_;
  std::mutex mutex_;
  std::condition_variable_any queued_;
  std::deque<std::pair<std::shared_ptr<Shard>, BucketId>> queue_;
  std::vector<std::jthread> threads_;
};

}  // namespace syncopate::ps
