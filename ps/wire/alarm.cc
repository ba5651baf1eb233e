#include "ps/wire/alarm.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "models/base/errors.h"

namespace syncopate::ps::wire {

Alarm::Alarm() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_) throw FileError(describe_errno("create", "a timer", errno));
}

void Alarm::set(std::chrono::nanoseconds from_now) noexcept {
  const bool at_once = from_now.count() <= 0;
  if (at_once && state_ == State::kRinging) return;
  // A time of zero would switch it off.
  write(std::max(from_now, std::chrono::nanoseconds(1)));
  state_ = at_once ? State::kRinging : State::kSet;
}

void Alarm::clear() noexcept {
  if (state_ == State::kOff) return;
  write(std::chrono::nanoseconds(0));
  state_ = State::kOff;
}

void Alarm::write(std::chrono::nanoseconds from_now) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(from_now);
  itimerspec time{};
  time.it_value.tv_sec = seconds.count();
  time.it_value.tv_nsec = (from_now - seconds).count();
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace syncopate::ps::wire
