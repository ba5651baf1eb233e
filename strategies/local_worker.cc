#include "strategies/local_worker.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "models/base/errors.h"

namespace syncopate {

// Nobody else looks at the copy's tensors, and the next cut makes its own: they are handed over.
Snapshot LocalWorker::read_cut(const Appointment& appointment, bool with_slots) {
  const std::shared_ptr<const ps::CutCopy> copy = job_.copy(appointment.cut);
  Snapshot snapshot{.values = copy->state.values, .slots = {}, .state = {}};
  snapshot.state =
      make_host_tensor({static_cast<std::int64_t>(copy->running_statistics.size())}, DType::kF32);
  std::ranges::copy(copy->running_statistics, snapshot.state.f32().begin());
  if (!with_slots) return snapshot;
  const auto names = job_.shard().optimizer().slot_names();
  check(copy->state.slots.size() == names.size(), "a cut for a checkpoint has the slots");
  for (std::size_t s = 0; s < names.size(); ++s) {
    snapshot.slots.push_back({std::string(names[s]), copy->state.slots[s]});
  }
  return snapshot;
}

void LocalWorker::refresh() {
  const std::span<float> values = replica_.arena->values().f32();
  const std::span<const Bucket> buckets = replica_.arena->buckets();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    job_.wait_values(worker_, bucket);  // of its last push: they go to the same memory
    job_.read(worker_, bucket,
              values.subspan(static_cast<std::size_t>(buckets[b].begin),
                             static_cast<std::size_t>(buckets[b].end - buckets[b].begin)));
  }
}

}  // namespace syncopate
