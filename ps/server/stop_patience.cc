#include "ps/server/stop_patience.h"

#include <chrono>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(600);

}  // namespace

void StopPatience::check(bool has_job, bool has_workers) {
  if (!ends_) {
    if (!stop_()) return;
    ends_ = Deadline::after(kPatience);
    if (has_job) {
      note_("asked to stop; waits for the workers to end, up to " + in_seconds(kPatience));
    }
  }
  if (!has_job) throw PeerError("stopped before the job had begun");
  if (!has_workers) {
    throw PeerError("stopped before the job was over: no worker is left to end it");
  }
  if (ends_->passed()) {
    throw PeerError("stopped before the job was over: the workers had not ended " +
                    in_seconds(kPatience) + " after the signal");
  }
}

}  // namespace syncopate::ps
