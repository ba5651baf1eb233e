// The two queues of a DataService: one from other threads to the data thread, and one from the data
// and update threads to the control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ps/net/mailbox.h"
#include "ps/net/wake_event.h"
#include "ps/server/served_variables.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// Work for the data thread, posted by the control thread and the mapping thread.
using DataThreadQueue = Mailbox<std::function<void()>>;

// EndedStep is a worker's push that ended a step.
struct EndedStep {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  wire::PushT push;
  bool is_applied = true;     // false if the push came too late and was dropped
  std::uint64_t version = 0;  // of the push's bucket afterwards
};

// DepartedWorker is a worker that the shard has removed. `sequence` is the sequence of its last
// push.
struct DepartedWorker {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
};

// The queue to the control thread: data and update threads add results, the control thread takes
// them. Thread-safe.
class DataServiceResults {
 public:
  int descriptor() const noexcept { return event_.descriptor(); }  // readable after notify()
  void notify() { event_.notify(); }
  // Adds an ended step. Does not call notify(): workers wait for the answers, so the data thread
  // sends the answers first, and then calls notify().
  void add_step(EndedStep step) {
    const std::lock_guard lock(mutex_);
    steps_.push_back(std::move(step));
  }
  void add_departed(const DepartedWorker& departed) {
    {
      const std::lock_guard lock(mutex_);
      departed_.push_back(departed);
    }
    notify();
  }
  void add_snapshot(std::shared_ptr<ServedSnapshot> snapshot) {
    {
      const std::lock_guard lock(mutex_);
      snapshot_ = std::move(snapshot);
    }
    notify();
  }
  void fail(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = reason;
    }
    notify();
  }

  std::vector<EndedStep> take_steps() {
    event_.clear();
    const std::lock_guard lock(mutex_);
    return std::exchange(steps_, {});
  }
  std::vector<DepartedWorker> take_departed() {
    const std::lock_guard lock(mutex_);
    return std::exchange(departed_, {});
  }
  std::shared_ptr<ServedSnapshot> take_snapshot() {
    const std::lock_guard lock(mutex_);
    return std::exchange(snapshot_, nullptr);
  }
  std::optional<std::string> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  WakeEvent event_;
  mutable std::mutex mutex_;
  std::vector<EndedStep> steps_;
  std::vector<DepartedWorker> departed_;
  std::shared_ptr<ServedSnapshot> snapshot_;
  std::optional<std::string> failure_;
};

}  // namespace syncopate::ps
