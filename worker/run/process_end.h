// Threads that end the process while the training thread is busy. PeerWatch ends the process after
// a peer has failed. EarlyStop ends the process on a request to stop that arrives before training
// has begun.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "ps/net/wake_event.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// Ends a run after its peers have failed. When a peer fails, the training thread is usually waiting
// for a peer; it then wakes up and throws. If the training thread is instead busy for too long, for
// example with a slow disk or a long step, this class ends the process, so that no task outlives
// its job.
class PeerWatch {
 public:
  using Act = std::function<void(const std::string& reason)>;

  // Calls end_process if a peer fails and this object still exists `grace` later.
  PeerWatch(Membership& membership, std::chrono::milliseconds grace, Act end_process);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  // While a Waker lives, PeerWatch calls `wake` when a peer fails. `wake` must not block.
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
  std::string reason_;  // why a peer failed; empty: no peer has failed; guarded by mutex_
  std::jthread thread_;
};

// Ends the process at once if a request to stop arrives before training begins, such as at the
// rendezvous or while the process waits for a slow disk. There is nothing to save at that time, and
// a run that would have resumed a checkpoint can be started again. The signals are blocked from the
// start of the process, so none is lost. While an EarlyStop exists, no other code may read
// `signals`.
class EarlyStop {
 public:
  // end_process: called on a thread of this object, with the name of the signal that arrived.
  EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process);
  EarlyStop(const EarlyStop&) = delete;
  EarlyStop& operator=(const EarlyStop&) = delete;
  ~EarlyStop();

 private:
  WakeEvent ended_;
  std::jthread thread_;
};

struct EarlyEnd {
  std::string line;   // message for the user
  int exit_code = 1;  // 75 with --resume, because the same command can be run again without loss
};
// Returns the message and the exit code of a run that `signal` ended before it trained.
EarlyEnd early_end(const TrainOptions& options, std::string_view signal);

}  // namespace syncopate
