#include "strategies/gradient_sums.h"

#include <fmt/format.h>

#include "models/base/errors.h"

namespace syncopate {

GradientSums::GradientSums(Replica& replica, ReplicaUpdate& update)
    : replica_(replica), update_(update) {
  // The step report lies in front of arena index 0, as a trailer of the gradients. It is summed
  // together with the bucket that begins at index 0, which is pushed last.
  const Tensor& block = replica.collective->block();
  for (const Bucket& bucket : replica.arena->buckets()) {
    const std::int64_t begin = bucket.begin == 0 ? -kTrailerElements : bucket.begin;
    sums_.push_back(
        {block.rows(kTrailerElements + begin, kTrailerElements + bucket.end), begin, 0});
  }
}

void GradientSums::push(BucketId bucket, const StepReport& report) {
  BucketSum& sum = sums_[static_cast<std::size_t>(bucket)];
  if (sum.begin < 0) {
    report_ = report;
    report_.blocked_seconds = peers_wait_.blocked_seconds();
    write_trailer(report_, trailer());
  }
  const Span span(replica_.trace, TraceKind::kCommunication);
  sum.work = replica_.collective->all_reduce(sum.gradients, sum.begin);
}

StepReport GradientSums::commit() {
  if (update_.clips()) {  // the norm is known when all sums are
    for (const BucketSum& sum : sums_) wait(sum.work);
    update_.clip();
  }
  for (std::size_t b = 0; b < sums_.size(); ++b) {
    if (!update_.clips()) wait(sums_[b].work);
    update_.update(static_cast<BucketId>(b));
  }
  if (replica_.collective->size() == 1) return report_;
  const StepReport total = read_trailer(trailer());
  peers_wait_.end_step(replica_.collective->times().exposed_seconds, total.blocked_seconds);
  return total;
}

void GradientSums::wait(WorkId work) {
  const Span span(replica_.trace, TraceKind::kCommunication);
  replica_.collective->wait(work);
}

std::span<float> GradientSums::trailer() const {
  return replica_.collective->block().f32().first(static_cast<std::size_t>(kTrailerElements));
}

void require_summable_reports(const StrategyOptions& options, int replicas) {
  if (replicas <= kMostReplicasInStep) return;
  throw UsageError(fmt::format("--strategy {}: the job has {} replicas; at most {} are possible",
                               options.name, replicas, kMostReplicasInStep));
}

}  // namespace syncopate
