// Decides when a silent peer is lost. If no heartbeats of a peer arrive, the peer may be dead,
// stopped or without a CPU; or the observing thread itself may have had no CPU. The classes have no
// clock: the caller passes the time. The membership of synchronous tasks and the control sockets of
// ps use it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"
#include "ps/net/process_probe.h"

namespace syncopate {

// Measures how long the observing thread did not run, for example because of SIGSTOP or for want of
// a CPU. One thread at a time.
class ObserverClock {
 public:
  using Time = Deadline::Clock::time_point;

  explicit ObserverClock(Time now) : expected_(now) {}

  // Returns how much later than announced the observing thread ran, or 0 if this delay is at most
  // kTolerance. The observing thread calls update() before each sleep, with the longest duration of
  // the sleep, and after each sleep, with 0.
  std::chrono::nanoseconds update(Time now, std::chrono::nanoseconds sleep);
  // Returns the sum of all delays so far.
  std::chrono::nanoseconds delay() const noexcept { return delay_; }

  // The longest delay that update() ignores. It is a tenth of the time between heartbeats (0.5 s
  // with a timeout of 5 s), so such a delay cannot make a peer look lost.
  static constexpr std::chrono::milliseconds kTolerance{50};

 private:
  Time expected_;  // when update() announced that the observer runs again
  std::chrono::nanoseconds delay_{0};
};

// A peer that was lost.
struct LostPeer {
  std::chrono::nanoseconds silence{0};
  // The part of the silence during which the observer did not run.
  std::chrono::nanoseconds unobserved{0};
  std::string process;  // the state of the peer's process, such as "; its process is stopped"
};
// Returns the end of a sentence about the peer, such as "sent nothing for 3.5 s, in which this task
// was not scheduled for 0 s; its process is stopped".
std::string describe(const LostPeer& lost);

// Measures the silence of one peer. Time is not counted while the observer's process is stopped,
// while one of its threads waits for a CPU, and while a thread of the peer waits for a CPU. The
// timeout for the remaining silence depends on the state of the peer's process:
//   - If the process is stopped, or no thread of it is left, the timeout is `timeout`.
//   - Otherwise the timeout is 3 `timeout` in each of three situations: the job is being set up, a
//     thread of the process waits for memory or a disk, or the process has ended but its connection
//     is still open.
//   - In all other cases the timeout is `timeout`. If the process is known to be alive, kLooks
//     successive checks must also have found it alive with a CPU. A process that has a CPU and
//     still sends nothing hangs.
// Unless the process is stopped or has no thread left, the peer is lost only if the last two checks
// found no thread of the peer or of the observer without a CPU. A single check cannot detect that a
// thread has no CPU.
// Used by one thread at a time.
class PeerSilence {
 public:
  using Time = ObserverClock::Time;

  // The silence begins at `now`. `look` checks the peer's process and returns its state.
  PeerSilence(std::chrono::nanoseconds timeout, std::function<ProcessState()> look, Time now,
              const ObserverClock& observer);

  void on_message(Time now, const ObserverClock& observer);
  // Returns a LostPeer if the peer is lost, otherwise nullopt. `in_set_up`: during set-up the
  // timeout is longer. Call check() only after all messages that have arrived were read.
  std::optional<LostPeer> check(Time now, const ObserverClock& observer, bool in_set_up);
  // Returns the time until check() may return a loss, if no message arrives.
  std::chrono::nanoseconds time_left(Time now, const ObserverClock& observer) const;

  static constexpr int kLongTimeout = 3;  // the longer timeout, as a multiple of timeout_
  static constexpr int kLooks = 4;
  // The time between two checks of the process. A thread that is ready to run and gets no CPU for
  // this time is starved: even with six busy threads per CPU, a thread gets its turn five times
  // sooner.
  static constexpr std::chrono::milliseconds kLookInterval{250};

 private:
  std::chrono::nanoseconds observed_silence(Time now, const ObserverClock& observer) const;

  std::chrono::nanoseconds timeout_;
  std::function<ProcessState()> look_;
  Time last_message_;
  std::chrono::nanoseconds delay_before_{0};  // the observer's delay until the last message
  // The time of the last check since the last message, and the peer's time without a CPU until this
  // check.
  std::optional<Time> last_look_;
  std::chrono::nanoseconds starved_{0};
  // The time during which a thread of the observer's process had no CPU.
  std::chrono::nanoseconds unobserved_{0};
  int looks_ = 0;        // number of successive checks that found no lack of a CPU
  int looks_alive_ = 0;  // number of successive checks that found the process alive with a CPU
};

}  // namespace syncopate
