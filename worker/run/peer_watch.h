// Ends a run whose peers are gone. Normally the training thread is woken where it waits for them,
// and throws; should it be busy elsewhere for too long (data that is read, a slow disk, a huge
// step), the process is ended here, so that no task outlives its job.
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

  // end_process: called when the watch still lives `grace` after a peer failed.
  PeerWatch(Membership& membership, std::chrono::milliseconds grace, Act end_process);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  // While it lives, a failure wakes the training thread by `wake`, which must not wait.
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
  std::string reason_;  // guarded by mutex_; empty: none
  std::jthread thread_;
};

}  // namespace syncopate
