#include "ps/net/wake_event.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "models/base/errors.h"

namespace syncopate {

WakeEvent::WakeEvent() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw FileError(describe_errno("create", "an eventfd", errno));
}

void WakeEvent::notify() noexcept { (void)eventfd_write(event_.get(), 1); }

bool WakeEvent::clear() noexcept {
  eventfd_t count = 0;
  return eventfd_read(event_.get(), &count) == 0;
}

WakeTimer::WakeTimer() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_) throw FileError(describe_errno("create", "a timer", errno));
}

void WakeTimer::set(std::chrono::nanoseconds from_now) noexcept {
  const bool at_once = from_now.count() <= 0;
  if (at_once && state_ == State::kExpired) return;
  // At least 1 ns: timerfd_settime() takes 0 as a request to switch the timer off.
  write(std::max(from_now, std::chrono::nanoseconds(1)));
  state_ = at_once ? State::kExpired : State::kSet;
}

void WakeTimer::clear() noexcept {
  if (state_ == State::kOff) return;
  write(std::chrono::nanoseconds(0));
  state_ = State::kOff;
}

void WakeTimer::write(std::chrono::nanoseconds from_now) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(from_now);
  itimerspec time{};
  time.it_value.tv_sec = seconds.count();
  time.it_value.tv_nsec = (from_now - seconds).count();
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace syncopate
