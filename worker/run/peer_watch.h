// Ends a run whose peers have failed. Usually the training thread wakes where it waits for them and
// throws. If it is busy for too long (reading data, a slow disk, a long step), this class ends the
// process, so that no task outlives its job.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "strategies/cluster/membership.h"

namespace syncopate {

class PeerWatch {
 public:
  using Act = std::function<void(const std::string& reason)>;

  // end_process is called when the object still exists `grace` after a peer failed.
  PeerWatch(Membership& membership, std::chrono::milliseconds grace, Act end_process);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  // While an object lives, a failure calls `wake`, which must not wait.
  class Waker {
   public:
    Waker(PeerWatch& watch, Act wake);
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;
    ~Waker();

   private:
    PeerWatch& watch_;
  };

 private:
  void note(const std::string& reason);

  Membership& membership_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string reason_;  // guarded by mutex_; empty: no failure
  std::jthread thread_;
};

}  // namespace syncopate
