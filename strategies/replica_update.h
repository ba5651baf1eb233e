// The update of variables that a replica holds on its own device: clips gradients, and lets the
// optimizer change the values and slots, including the moving average. Used by the stores of the
// strategies with such variables.
#pragma once

#include <vector>

#include "models/optim/optimizer.h"
#include "strategies/snapshot.h"
#include "strategies/strategy.h"

namespace syncopate {

// Updates the variables of one replica. Used by the replica's thread only.
class ReplicaUpdate {
 public:
  // The slots begin as zeros. `replica` must outlive the object. Throws the errors of
  // make_optimizer().
  ReplicaUpdate(Replica& replica, const StrategyOptions& options)
      : replica_(replica),
        slots_(options.optimizer, replica.arena->layout().total()),
        clip_norm_(options.clip_norm) {}

  // Begins the update of a step. Called once per step, before the other functions.
  void begin(const UpdateStep& step) noexcept { step_ = step; }
  // Returns whether gradients must be clipped. If so, call clip() in each step, after the gradients
  // of all buckets are complete and before the first update() of the step.
  bool clips() const noexcept { return clip_norm_ > 0.0; }
  void clip() {
    const Span span(replica_.trace, TraceKind::kUpdate);
    replica_.backend->clip_gradients(*replica_.arena, clip_norm_);
  }
  void update(BucketId bucket) {
    const Span span(replica_.trace, TraceKind::kUpdate);
    update_range(replica_.arena->buckets()[static_cast<std::size_t>(bucket)]);
    replica_.arena->bump_version(bucket);
  }
  // Clips the gradients of all buckets, and updates all buckets at once.
  void clip_and_update_all() {
    if (clips()) clip();
    const Span span(replica_.trace, TraceKind::kUpdate);
    update_range({0, replica_.arena->layout().total()});
    replica_.arena->bump_all_versions();
  }

  std::vector<Snapshot::Slot> slots() const { return slots_.named(); }

 private:
  void update_range(Bucket range) {
    replica_.backend->update(slots_.optimizer(), step_, *replica_.arena, slots_.tensors(), range);
  }

  Replica& replica_;
  OptimizerSlots slots_;
  const double clip_norm_;
  UpdateStep step_;
};

}  // namespace syncopate
