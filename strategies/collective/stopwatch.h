// How long all-reduces are under way, and how much of it the caller stands and waits.
#pragma once

#include <chrono>

#include "strategies/collective/collective.h"

namespace syncopate {

// One thread only.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  // While it lives, the caller stands in a call.
  class Exposed {
   public:
    explicit Exposed(Stopwatch& watch) : watch_(watch), begun_(Clock::now()) {}
    Exposed(const Exposed&) = delete;
    Exposed& operator=(const Exposed&) = delete;
    ~Exposed() { watch_.times_.exposed_seconds += since(begun_); }

   private:
    Stopwatch& watch_;
    Clock::time_point begun_;
  };

  // A call that begins and ends what it does: exposed, and under way unless something already is.
  class Blocking {
   public:
    explicit Blocking(Stopwatch& watch)
        : watch_(watch), exposed_(watch), begins_(!watch.under_way_) {
      if (begins_) watch_.begin();
    }
    Blocking(const Blocking&) = delete;
    Blocking& operator=(const Blocking&) = delete;
    ~Blocking() {
      if (begins_) watch_.end();
    }

   private:
    Stopwatch& watch_;
    Exposed exposed_;
    bool begins_;
  };

  // The first operation under way begins; the last one ends.
  void begin() {
    if (under_way_) return;
    under_way_ = true;
    begun_ = Clock::now();
  }
  void end() {
    if (under_way_) times_.under_way_seconds += since(begun_);
    under_way_ = false;
  }
  CommunicationTimes times() const noexcept { return times_; }

 private:
  static double since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  CommunicationTimes times_;
  bool under_way_ = false;
  Clock::time_point begun_;
};

}  // namespace syncopate
