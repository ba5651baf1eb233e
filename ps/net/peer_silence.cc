#include "ps/net/peer_silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate {
namespace {

using std::chrono::nanoseconds;

std::string process_text(ProcessState state, nanoseconds starved) {
  switch (state) {
    case ProcessState::kEnded:
    case ProcessState::kEnding:
      return "; its process has ended";
    case ProcessState::kStopped:
      return "; its process is stopped";
    case ProcessState::kAlive:
    case ProcessState::kBlocked:
    case ProcessState::kStarved:
    case ProcessState::kUnobserved:
      return fmt::format("; its process is alive and had no CPU for {}", in_seconds(starved));
    case ProcessState::kUnknown:
      break;
  }
  return "";
}

}  // namespace

std::string describe(const LostPeer& lost) {
  return fmt::format("sent nothing for {}, in which this task was not scheduled for {}{}",
                     in_seconds(lost.silence), in_seconds(lost.unobserved), lost.process);
}

nanoseconds ObserverClock::update(Time now, nanoseconds sleep) {
  const nanoseconds delay = now - expected_;
  expected_ = now + sleep;
  if (delay <= kTolerance) return nanoseconds(0);
  delay_ += delay;
  return delay;
}

PeerSilence::PeerSilence(nanoseconds timeout, std::function<ProcessState()> look, Time now,
                         const ObserverClock& observer)
    : timeout_(timeout), look_(std::move(look)) {
  on_message(now, observer);
}

void PeerSilence::on_message(Time now, const ObserverClock& observer) {
  last_message_ = now;
  delay_before_ = observer.delay();
  last_look_.reset();
  starved_ = unobserved_ = nanoseconds(0);
  looks_ = looks_alive_ = 0;
}

nanoseconds PeerSilence::observed_silence(Time now, const ObserverClock& observer) const {
  return now - last_message_ - (observer.delay() - delay_before_);
}

std::optional<LostPeer> PeerSilence::check(Time now, const ObserverClock& observer,
                                           bool in_set_up) {
  if (time_left(now, observer) > nanoseconds(0)) return std::nullopt;
  const ProcessState state = look_();
  const nanoseconds since_look = last_look_ ? now - *last_look_ : nanoseconds(0);
  if (state == ProcessState::kStarved) starved_ += since_look;
  if (state == ProcessState::kUnobserved) unobserved_ += since_look;
  last_look_ = now;
  looks_alive_ = state == ProcessState::kAlive ? looks_alive_ + 1 : 0;
  const bool had_no_cpu = state == ProcessState::kStarved || state == ProcessState::kUnobserved;
  looks_ = had_no_cpu ? 0 : looks_ + 1;
  if (had_no_cpu) return std::nullopt;
  const bool is_certain = state == ProcessState::kEnded || state == ProcessState::kStopped;
  if (!is_certain) {
    constexpr int kFewestLooks = 2;
    if (looks_ < kFewestLooks) return std::nullopt;
    const bool is_long =
        in_set_up || state == ProcessState::kBlocked || state == ProcessState::kEnding;
    const nanoseconds silence = observed_silence(now, observer) - starved_ - unobserved_;
    if (silence < (is_long ? kLongTimeout * timeout_ : timeout_)) return std::nullopt;
    if (state == ProcessState::kAlive && looks_alive_ < kLooks) return std::nullopt;
  }
  const nanoseconds silence = now - last_message_;
  return LostPeer{.silence = silence,
                  .unobserved = std::min(silence, observer.delay() - delay_before_ + unobserved_),
                  .process = process_text(state, starved_)};
}

nanoseconds PeerSilence::time_left(Time now, const ObserverClock& observer) const {
  const nanoseconds until_look = last_look_ ? *last_look_ + kLookInterval - now : nanoseconds(0);
  return std::max({nanoseconds(0), timeout_ - observed_silence(now, observer), until_look});
}

}  // namespace syncopate
