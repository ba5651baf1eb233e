#include "ps/coordinator/reconnect_timeout.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::ps {
namespace {

// How long a task that was asked to stop waits for a server. A launcher kills its roles 5 s after
// its request to stop, and a task may take seconds to end on a busy machine.
constexpr std::chrono::milliseconds kReconnectTimeoutWhenStopping = std::chrono::seconds(2);

// A process that continues after a suspension notices within this time that a connection was closed
// during the suspension.
constexpr std::chrono::milliseconds kDetectionDelay = std::chrono::seconds(1);

}  // namespace

ReconnectTimeout::ReconnectTimeout(std::string waiting, std::chrono::milliseconds timeout,
                                   std::function<bool()> asked_to_stop)
    : waiting_(std::move(waiting)), timeout_(timeout), asked_to_stop_(std::move(asked_to_stop)) {}

void ReconnectTimeout::begin() {
  if (until_) return;
  begun_ = Deadline::Clock::now();
  away_ = {};
  is_silent_ = false;
  restart();
}

void ReconnectTimeout::begin(const LostPeer& lost) {
  if (until_) return;
  begin();
  until_ = Deadline::after(timeout_ - (lost.silence - lost.unobserved));
  away_ = lost;
  is_silent_ = true;
}

void ReconnectTimeout::restart() {
  until_ = Deadline::after(timeout_);
  is_shortened_ = false;
  broke_while_suspended_ = resumed_until_ && !resumed_until_->passed() && suspended_ > timeout_;
}

void ReconnectTimeout::extend(std::chrono::nanoseconds suspended) {
  suspended_ = suspended;
  resumed_until_ = Deadline::after(kDetectionDelay);
  if (!until_) return;
  away_.unobserved += suspended;
  // The launcher's time to its kill does not begin again.
  if (!is_shortened_) restart();
}

void ReconnectTimeout::shorten_if_asked_to_stop() {
  if (is_shortened_ || until_->remaining() <= kReconnectTimeoutWhenStopping) return;
  if (!asked_to_stop_ || !asked_to_stop_()) return;
  is_shortened_ = true;
  until_ = Deadline::after(kReconnectTimeoutWhenStopping);
}

std::optional<std::string> ReconnectTimeout::expired(const std::string& server,
                                                     bool has_checkpoints) {
  if (!until_) return std::nullopt;
  shorten_if_asked_to_stop();
  if (!until_->passed()) return std::nullopt;
  if (broke_while_suspended_) {
    return fmt::format(
        "{} disconnected while {} was suspended for {}; see the output of the other "
        "tasks: they may have completed the job without it",
        server, waiting_, in_seconds(suspended_));
  }
  if (is_shortened_) {
    return fmt::format(
        "{} was disconnected when {} was requested to stop, and did not reconnect within {}{}",
        server, waiting_, in_seconds(until_->timeout()), resume_advice(has_checkpoints));
  }
  LostPeer away = away_;
  away.silence += Deadline::Clock::now() - begun_;
  return fmt::format("{} {}{}{}", server, is_silent_ ? "" : "is disconnected, and ", describe(away),
                     resume_advice(has_checkpoints));
}

}  // namespace syncopate::ps
