#include "ps/server/stop_timeout.h"

#include <fmt/format.h>

#include <chrono>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::milliseconds kStopTimeout = std::chrono::seconds(600);

}  // namespace

void StopTimeout::check(bool has_job, bool has_workers) {
  if (!ends_) {
    if (!stop_()) return;
    ends_ = Deadline::after(kStopTimeout);
    if (has_job) {
      note_(fmt::format("asked to stop; waits up to {} for the workers to end",
                        in_seconds(kStopTimeout)));
    }
  }
  if (!has_job) throw PeerError("stopped before the job had begun");
  if (!has_workers) {
    throw PeerError("stopped before the job was over: no worker is left to end it");
  }
  if (ends_->passed()) {
    throw PeerError(fmt::format(
        "stopped before the job was over: the workers had not ended {} after the request to stop",
        in_seconds(kStopTimeout)));
  }
}

}  // namespace syncopate::ps
