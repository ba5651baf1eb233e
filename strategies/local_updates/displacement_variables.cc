#include "strategies/local_updates/displacement_variables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/base/errors.h"
#include "models/optim/outer_rule.h"
#include "strategies/snapshot.h"

namespace syncopate {

DisplacementVariables::DisplacementVariables(Replica& replica, ShardTransport& transport,
                                             const StrategyOptions& options)
    : replica_(replica),
      transport_(transport),
      update_(replica, options),
      options_(options.local),
      outer_rate_(static_cast<float>(shard_outer_options(options).learning_rate)),
      lanes_(options.lanes),
      start_(make_host_tensor({replica.arena->layout().total()}, DType::kF32)) {
  check_local_updates(options);
}

void DisplacementVariables::pull(const UpdateStep& update) {
  now_ = update;
  now_.step = updates_ + 1;
  update_.begin(now_);
}

void DisplacementVariables::wait_values(BucketId bucket) {
  if (is_in_round()) return;
  {
    const Stopwatch::Exposed exposed(watch_);
    const Span span(replica_.trace, TraceKind::kCommunication);
    transport_.wait_values(bucket);
  }
  const Bucket& range = replica_.arena->buckets()[static_cast<std::size_t>(bucket)];
  const auto begin = static_cast<std::size_t>(range.begin);
  const auto size = static_cast<std::size_t>(range.end - range.begin);
  std::ranges::copy(replica_.arena->values().f32().subspan(begin, size),
                    start_.f32().subspan(begin, size).begin());
  replica_.arena->bump_version(bucket);
}

void DisplacementVariables::push(BucketId /*bucket*/, const StepReport& report) {
  report_ = report;
}

StepReport DisplacementVariables::commit() {
  if (!is_in_round()) watch_.end();  // all answers to the last round's pushes have arrived
  if (!std::isfinite(report_.scores.loss)) {
    report_.round_steps = 0;
    return report_;
  }
  update_.clip_and_update_all();
  ++updates_;
  round_ += report_;
  rates_.push_back(now_.learning_rate);
  bad_.push_back(report_.scores.num_bad);
  StepReport own = report_;
  own.round_steps = std::ssize(rates_) == options_.sync_every ? options_.sync_every : 0;
  // The last update of a round may overflow; the shards would keep what it made.
  if (own.round_steps > 0 && !end_round()) {
    own.round_steps = 0;
    own.scores.loss = std::numeric_limits<double>::quiet_NaN();
  }
  return own;
}

bool DisplacementVariables::end_round() {
  const Span exchange(replica_.trace, TraceKind::kExchange, ++rounds_);
  watch_.begin();
  const Stopwatch::Exposed exposed(watch_);
  const ParameterArena& arena = *replica_.arena;
  displacement(arena.gradients().f32(), start_.f32(), arena.values().f32(), 1.0F);
  if (!all_finite(arena.gradients())) return false;
  ps::StepInfo info = step_info_of(replica_, std::exchange(round_, {}), outer_rate_, lanes_);
  info.inner_rates = std::exchange(rates_, {});
  info.bad_of_batches = std::exchange(bad_, {});
  transport_.begin_step(std::move(info));
  for (std::size_t b = 0; b < arena.buckets().size(); ++b) {
    transport_.push(static_cast<BucketId>(b));
  }
  transport_.finish_step();
  if (options_.inner_state == InnerState::kReset) {
    for (const Snapshot::Slot& slot : update_.slots()) std::ranges::fill(slot.values.f32(), 0.0F);
    updates_ = 0;
  }
  return true;
}

void DisplacementVariables::end_round_early() {
  if (is_in_round() && !end_round()) {
    throw UsageError(
        "the values of a worker are not finite after an incomplete round; try a smaller "
        "--learning-rate");
  }
}

}  // namespace syncopate
