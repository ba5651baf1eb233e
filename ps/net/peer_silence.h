// Decides when a silent peer is lost. If no heartbeats of a peer arrive, it may be dead, stopped or
// without a CPU, and the observing thread itself may be without a CPU. Pure: the caller passes the
// time. The membership of synchronous tasks and the control sockets of ps use it.
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

  // The observing thread calls update() before each sleep with the longest duration of the sleep,
  // and after the sleep with 0. Returns by how much the thread ran later than announced, or 0 if
  // that is at most kTolerance.
  std::chrono::nanoseconds update(Time now, std::chrono::nanoseconds sleep);
  // Returns the sum of all delays so far.
  std::chrono::nanoseconds delay() const noexcept { return delay_; }

  // A tenth of the time between heartbeats if the timeout is 5 s. A delay this short cannot look
  // like a lost peer.
  static constexpr std::chrono::milliseconds kTolerance{50};

 private:
  Time expected_;  // when update() announced that the observer runs again
  std::chrono::nanoseconds delay_{0};
};

// A peer that was lost.
struct LostPeer {
  std::chrono::nanoseconds silence{0};
  std::chrono::nanoseconds unobserved{
      0};               // the part of the silence in which the observer did not run
  std::string process;  // the state of the peer's process, such as "; its process is stopped"
};
// Returns the end of a sentence about the peer, such as "sent nothing for 3.5 s, in which this task
// was not scheduled for 0 s; its process is stopped".
std::string describe(const LostPeer& lost);

// The silence of one peer. Two kinds of time do not count as silence: while the observer or another
// thread of its process did not run, and while the kernel gave the peer no CPU. The timeout for the
// remaining silence:
//   - `timeout` if the process has ended or is stopped,
//   - 3 `timeout` during set-up, if a thread of the process waits for memory or a disk, and if the
//     process has ended but its connection has not,
//   - else `timeout`, and if the process is known to be alive, kLooks looks at it: it hangs if it
//     has a CPU in all of them, and still sends nothing.
// Unless the process has ended or is stopped, the last two looks must have found no lack of a CPU:
// a single look cannot find it. One thread at a time.
class PeerSilence {
 public:
  using Time = ObserverClock::Time;

  // The peer's last message counts as received at `now`. `look` returns the state of its process.
  PeerSilence(std::chrono::nanoseconds timeout, std::function<ProcessState()> look, Time now,
              const ObserverClock& observer);

  void on_message(Time now, const ObserverClock& observer);
  // Returns the loss of the peer. Called once all messages that have arrived were read.
  std::optional<LostPeer> check(Time now, const ObserverClock& observer, bool in_set_up);
  // Returns the time until check() may return a loss, if no message arrives.
  std::chrono::nanoseconds time_left(Time now, const ObserverClock& observer) const;

  static constexpr int kLongTimeout = 3;  // in timeouts
  static constexpr int kLooks = 4;
  // A thread that is ready to run and gets no CPU for so long is starved: beside six busy threads
  // per CPU, its turn comes five times sooner.
  static constexpr std::chrono::milliseconds kLookInterval{250};

 private:
  std::chrono::nanoseconds observed_silence(Time now, const ObserverClock& observer) const;

  std::chrono::nanoseconds timeout_;
  std::function<ProcessState()> look_;
  Time last_message_;
  std::chrono::nanoseconds delay_before_{0};  // the observer's, until the last message
  // The time of the last look since the last message, and the time without a CPU until then.
  std::optional<Time> last_look_;
  std::chrono::nanoseconds starved_{0};
  std::chrono::nanoseconds unobserved_{0};  // the observer's process had a thread without a CPU
  int looks_ = 0;                           // in a row that found no lack of a CPU
  int looks_alive_ = 0;                     // in a row
};

}  // namespace syncopate
