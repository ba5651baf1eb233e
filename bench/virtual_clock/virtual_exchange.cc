// The messages between the workers and the servers of VirtualAsynchronousJob.
#include <algorithm>

#include "bench/virtual_clock/virtual_asynchronous_job.h"

namespace syncopate::bench {

void VirtualAsynchronousJob::push(int w, BucketId bucket) {
  VirtualWorker& of = worker(w);
  if (bucket == 0) train(w);
  if (bucket == buckets_.first_used()) {  // the last bucket of the step
    WorkerAccount& times = account(w);
    ++times.steps;
    times.samples += of.pushed.front().scores.num_samples;
    times.compute += of.compute;
    of.computed = now();
    of.doing = VirtualWorker::Doing::kExchanging;
  }
  send(w, bucket);
}

void VirtualAsynchronousJob::send(int w, BucketId bucket) {
  const std::int64_t bytes = worker(w).gradient->bytes(bucket);
  account(w).bytes_sent += bytes;
  plan_event(network_.up(now(), w, buckets_.owner_of(bucket), bytes), JobEvent::Kind::kPushed, w,
             bucket);
}

void VirtualAsynchronousJob::pushed(int w, BucketId bucket) {
  VirtualWorker& of = worker(w);
  of.trips[static_cast<std::size_t>(bucket)].sent = now();
  // A shard that sums waits for all pushes of an update.
  if (merges_pushes()) return served(w, bucket);
  of.is_queued[static_cast<std::size_t>(bucket)] = true;
  plan_event(occupy(bucket, of.gradient->bytes(bucket)), JobEvent::Kind::kServed, w, bucket);
}

VirtualTime VirtualAsynchronousJob::occupy(BucketId bucket, std::int64_t bytes) {
  VirtualTime& free = server_free_[static_cast<std::size_t>(buckets_.owner_of(bucket))];
  free = std::max(free, now()) + update_time(server_bytes_per_second_, bytes, 1);
  return free;
}

void VirtualAsynchronousJob::served(int w, BucketId bucket) {
  VirtualWorker& of = worker(w);
  const auto b = static_cast<std::size_t>(bucket);
  of.is_queued[b] = false;
  of.trips[b].on_server = now() - of.trips[b].sent;
  const bool takes_part = shard_.push({.id = {w, of.incarnation, of.sequence},
                                       .bucket = bucket,
                                       .version = of.versions[b],
                                       .learning_rate = static_cast<float>(of.pushed_rate),
                                       .arrived = now(),
                                       .samples = of.pushed_samples(),
                                       .gradient = of.gradient->part(bucket),
                                       .values = values_of(of, bucket),
                                       .token = of.incarnation});
  check(takes_part, "a running worker may push");
  of.is_in_shard = of.is_in_shard || bucket == last_of_server_0_;
}

void VirtualAsynchronousJob::on_shard_events(BucketId bucket) {
  using Kind = ps::ShardEvent::Kind;
  VirtualTime& updated = updated_[static_cast<std::size_t>(bucket)];
  if (merges_pushes()) {
    std::int64_t bytes = 0;
    for (const ps::ShardEvent& event : events_) {
      if (event.kind == Kind::kApplied) bytes += worker(event.worker).gradient->bytes(bucket);
    }
    if (bytes > 0) updated = occupy(bucket, bytes);
  }
  // A gradient that came too late is answered with the values of the update that it missed, which
  // may not have ended.
  updated = std::max(updated, now());
  for (const ps::ShardEvent& event : events_) {
    if (event.kind == Kind::kApplied) end_ = std::max(end_, updated);
    on_shard_event(event);
  }
  for (const ps::ShardEvent& event : events_) {
    if (event.kind == Kind::kAnswered) answer(event, updated);
  }
}

void VirtualAsynchronousJob::on_shard_event(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  if (event.kind == Kind::kApplied) {
    staleness_.add(event.staleness);
  } else if (event.kind != Kind::kDropped) {
    return;
  }
  VirtualWorker& of = worker(event.worker);
  if (of.incarnation != event.token || (!of.is_alive && !of.is_in_shard)) return;
  of.drops.add(event.sequence, event.kind == Kind::kDropped, shard_.buckets().size());
  if (event.bucket == last_of_server_0_) end_step(event);
}

void VirtualAsynchronousJob::answer(const ps::ShardEvent& event, VirtualTime updated) {
  VirtualWorker& of = worker(event.worker);
  if (!of.is_alive || of.incarnation != event.token) return;
  const auto b = static_cast<std::size_t>(event.bucket);
  of.versions[b] = event.version;
  if (updated > now()) of.trips[b].on_server = updated - now();
  plan_event(updated, JobEvent::Kind::kReleased, event.worker, event.bucket);
}

void VirtualAsynchronousJob::send_values(int w, BucketId bucket) {
  VirtualWorker& of = worker(w);
  of.trips[static_cast<std::size_t>(bucket)].answered = now();
  // Every worker computes the initial values from the seed, so they are not sent.
  const bool travels = of.sequence > 0 || now() > VirtualTime(0);
  const std::int64_t bytes = travels ? buckets_.bytes_of(bucket) : 0;
  account(w).bytes_received += bytes;
  const VirtualTime there =
      travels ? network_.down(now(), buckets_.owner_of(bucket), w, bytes) : now();
  plan_event(there, JobEvent::Kind::kAnswered, w, bucket);
}

void VirtualAsynchronousJob::answered(int w, BucketId bucket) {
  VirtualWorker& of = worker(w);
  of.trips[static_cast<std::size_t>(bucket)].arrived = now();
  of.has_values[static_cast<std::size_t>(bucket)] = true;
  --of.values_missing;
  wait_for_batch(w);
  if (of.values_missing == 0 && of.doing == VirtualWorker::Doing::kComputing) compute(w);
}

}  // namespace syncopate::bench
