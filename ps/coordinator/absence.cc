#include "ps/coordinator/absence.h"

#include <utility>

#include "models/base/log.h"
#include "ps/coordinator/resume_advice.h"

namespace syncopate::ps {
namespace {

// Less than what a launcher gives those that it has asked to stop.
constexpr std::chrono::milliseconds kWhenAskedToStop = std::chrono::seconds(3);

// By then a connection that was closed while we slept has been seen to be.
constexpr std::chrono::milliseconds kToNotice = std::chrono::seconds(1);

}  // namespace

Absence::Absence(std::string waiting, std::chrono::milliseconds patience,
                 std::function<bool()> asked_to_stop)
    : waiting_(std::move(waiting)), patience_(patience), asked_to_stop_(std::move(asked_to_stop)) {}

void Absence::begin() {
  if (until_) return;
  until_ = Deadline::after(patience_);
  is_cut_short_ = false;
  has_gone_meanwhile_ = awake_ && !awake_->passed() && slept_ > patience_;
}

void Absence::forgive(std::chrono::nanoseconds slept) {
  slept_ = slept;
  awake_ = Deadline::after(kToNotice);
  if (!until_) return;
  end();
  begin();
}

void Absence::cut_short() {
  if (is_cut_short_ || until_->remaining() <= kWhenAskedToStop) return;
  if (!asked_to_stop_ || !asked_to_stop_()) return;
  is_cut_short_ = true;
  until_ = Deadline::after(kWhenAskedToStop);
}

std::optional<std::string> Absence::verdict(const std::string& server, bool has_checkpoints) {
  if (!until_) return std::nullopt;
  cut_short();
  if (!until_->passed()) return std::nullopt;
  if (has_gone_meanwhile_) {
    return server + " has gone while " + waiting_ + " was stopped for " + in_seconds(slept_) +
           "; see what the others printed: they may have completed the job without it";
  }
  return server +
         (is_cut_short_
              ? " was away when " + waiting_ + " was asked to stop, and is not back after "
              : " has been away for ") +
         in_seconds(until_->patience()) + resume_advice(has_checkpoints);
}

}  // namespace syncopate::ps
