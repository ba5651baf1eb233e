#include "strategies/pipeline/stage_variables.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <span>

#include "models/optim/gradient_clip.h"
#include "models/tensor/buffer.h"
#include "strategies/step_trailer.h"

namespace syncopate {

StageVariables::StageVariables(Replica& replica, const StrategyOptions& options, Bucket own,
                               const TaskLinks& links, const double& idle_seconds)
    : replica_(replica),
      own_(own),
      links_(links),
      idle_seconds_(idle_seconds),
      optimizer_(make_optimizer(options.optimizer)),
      clip_norm_(options.clip_norm),
      membership_(*options.membership),
      trailer_(replica.collective->block().rows(0, kTrailerElements)) {
  for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
    slots_.push_back(make_sparse_host_tensor({replica.arena->layout().total()}, DType::kF32));
  }
}

// Every stage reads the samples' order, and the first one alone counts those that are bad.
void StageVariables::push(BucketId bucket, const StepReport& report) {
  if (bucket != 0) return;
  StepReport own = report;
  if (replica_.collective->rank() != 0) own.scores.num_bad = 0;
  write_trailer(own, trailer_.f32());
  call_collective([&](Collective& collective) {
    report_sum_ = collective.all_reduce(trailer_, -kTrailerElements);
  });
}

StepReport StageVariables::commit() {
  {
    const Span span(replica_.trace, TraceKind::kUpdate);
    if (clip_norm_ > 0.0) clip_gradients();
    replica_.backend->update(*optimizer_, update_, *replica_.arena, slots_, own_);
  }
  ++steps_;
  const Span span(replica_.trace, TraceKind::kCommunication);
  const auto begun = std::chrono::steady_clock::now();
  call_collective([&](Collective& collective) { collective.wait(report_sum_); });
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return read_trailer(trailer_.f32());
}

// Adds to an error what the stage waited for.
void StageVariables::call_collective(const std::function<void(Collective&)>& call) {
  try {
    call(*replica_.collective);
  } catch (const PeerError& error) {
    throw ended_wait(membership_,
                     fmt::format("rank {} waited for the other stages to end step {}",
                                 replica_.collective->rank(), update_.step),
                     error.what());
  }
}

// The stages add their gradients to the sums one after the other, in the order of the arena, so
// that the norm equals the norm on one device bit for bit.
void StageVariables::clip_gradients() {
  NormSums sums;
  for (int stage = 0; stage < replica_.collective->size(); ++stage) {
    if (stage == replica_.collective->rank()) {
      sums.add(replica_.arena->gradients().rows(own_.begin, own_.end).f32());
    }
    replica_.collective->broadcast(std::as_writable_bytes(sums.all()), stage);
  }
  scale_gradients(replica_.arena->gradients().rows(own_.begin, own_.end).f32(),
                  clip_factor(sums.norm(), clip_norm_));
}

CommunicationTimes StageVariables::times() const {
  CommunicationTimes times = replica_.collective->times();
  times.exposed_seconds = idle_seconds();
  times.under_way_seconds = idle_seconds();
  times.peers_wait_seconds = idle_seconds();
  if (links_.uses_tcp() && times.bytes_sent) {
    *times.bytes_sent += links_.bytes_sent();
    *times.bytes_received += links_.bytes_received();
  }
  return times;
}

}  // namespace syncopate
