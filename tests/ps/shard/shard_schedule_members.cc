// Implements the events of ShardSchedule for workers that join, rest and leave, and for snapshots.
#include <algorithm>

#include "tests/ps/shard/shard_schedule.h"

namespace syncopate::ps {

void ShardSchedule::join(int worker, bool as_new) {
  Client& client = clients_[static_cast<std::size_t>(worker)];
  // The shard does all work that is due before a worker joins, so that the model knows which pushes
  // have begun.
  drain();
  // A server does not admit an incarnation again that has left. Under kQuorum, its pushes to other
  // buckets than the first would never be merged.
  if (options_.consistency == Consistency::kQuorum) as_new = true;
  if (client.incarnation == 0 || as_new) {
    const auto sequence = static_cast<std::uint64_t>(10 * below(3));
    client = {
        .incarnation = client.incarnation + 1, .step = sequence + 1, .order = {}, .versions = {}};
    for (int b = 0; b < buckets_; ++b) client.order.push_back(b);
    joined_since_freeze_.insert(worker);
  } else {
    // A worker that joins again continues its own numbering of pushes. Pushes that it sent before
    // it left may still wait.
    client.answers = static_cast<int>(std::ranges::count_if(requests_, [&](const auto& request) {
      return request.worker == worker && request.incarnation == client.incarnation &&
             !request.is_closed && !request.is_duplicate && request.wants_values;
    }));
  }
  client.is_active = true;
  client.versions.assign(static_cast<std::size_t>(buckets_), 1);
  for (int b = 0; b < buckets_; ++b) {
    if (one_in(2)) (void)claim(b);
  }
  shard_->join(worker, client.incarnation, client.step - 1);
  // Updates that have begun end before the worker joins the model, which includes their pushes.
  for (int b = 0; b < buckets_; ++b) end_task(b);
  join_model(worker);
  for (int b = 0; b < buckets_; ++b) read(worker, b);
}

// Returns the slowest clock of the other workers on any bucket.
void ShardSchedule::join_model(int worker) {
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  const std::optional<std::int64_t> slowest = slowest_other(worker);
  std::optional<std::uint64_t> own;
  for (ModelBucket& model : models_) {
    ModelBucket::Worker& joiner = model.worker(worker);
    if (joiner.incarnation != client.incarnation) {
      joiner = {
          .incarnation = client.incarnation, .accepted = client.step - 1, .done = client.step - 1};
    }
    own = std::min(own.value_or(joiner.done), joiner.done);
  }
  for (ModelBucket& model : models_) {
    model.worker(worker).is_active = true;
    model.worker(worker).rests = false;
    model.worker(worker).offset = slowest ? *slowest - static_cast<std::int64_t>(*own) : 0;
  }
}

std::optional<std::int64_t> ShardSchedule::slowest_other(int worker) {
  std::optional<std::int64_t> slowest;
  for (ModelBucket& model : models_) {
    for (int other = 0; other < workers_; ++other) {
      if (other == worker || !model.worker(other).is_awaited()) continue;
      const std::int64_t clock = model.worker(other).clock();
      slowest = std::min(slowest.value_or(clock), clock);
    }
  }
  return slowest;
}

void ShardSchedule::rest(int worker) {
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  for (ModelBucket& model : models_) {
    model.worker(worker).rests = true;
    model.worker(worker).rests_after = client.step - 1;
  }
  shard_->rest(worker, client.incarnation, client.step - 1);
}

void ShardSchedule::wake_model(int worker) {
  drain();
  const std::optional<std::int64_t> slowest = slowest_other(worker);
  for (ModelBucket& model : models_) {
    ModelBucket::Worker& waking = model.worker(worker);
    waking.rests = false;
    if (slowest) {
      waking.offset =
          std::max(waking.offset, *slowest - static_cast<std::int64_t>(waking.rests_after));
    }
  }
}

void ShardSchedule::leave(int worker) {
  drain();
  Client& client = clients_[static_cast<std::size_t>(worker)];
  for (int b = 0; b < buckets_; ++b) {
    if (one_in(2)) (void)claim(b);
    models_[static_cast<std::size_t>(b)].worker(worker).is_active = false;
  }
  shard_->leave(worker, client.incarnation);
  client.is_active = false;
}

void ShardSchedule::freeze() {
  drain();
  for (int i = 0; i < 4; ++i) (void)claim(below(buckets_));
  clocks_.clear();
  joined_since_freeze_.clear();
  for (const WorkerClock& entry : shard_->freeze(++snapshots_begun_)) clocks_[entry.worker] = entry;
  phase_ = Phase::kFrozen;
}

// Begins a snapshot. Other shards may have begun more pushes: of the current step of a worker, or
// of the next step if the worker has all values.
void ShardSchedule::begin_snapshot() {
  const bool all = one_in(2);  // synchronous workers push all buckets
  for (auto& [worker, entry] : clocks_) {
    const Client& client = clients_[static_cast<std::size_t>(worker)];
    if (!client.is_active || client.incarnation != entry.incarnation) continue;
    if (is_plain_sync()) {
      entry.sequence += all ? 1 : 0;
    } else if (one_in(2) && can_push(client)) {
      entry.sequence = std::max(entry.sequence, client.step);
    }
  }
  std::vector<WorkerClock> entries;
  for (const auto& [worker, entry] : clocks_) {
    if (!joined_since_freeze_.contains(worker)) entries.push_back(entry);
  }
  // Other shards may know workers that have joined this one since; it holds these back.
  for (const WorkerId worker : joined_since_freeze_) {
    const Client& client = clients_[static_cast<std::size_t>(worker)];
    entries.push_back({worker, client.incarnation, client.step});
  }
  // The schedule drops the earlier snapshot; only the shard, which may still write to it, keeps a
  // reference.
  target_ = std::make_shared<ShardSnapshot>();
  target_->values = make_host_tensor({std::int64_t{buckets_} * workers_}, DType::kF32);
  phase_ = Phase::kCopying;
  not_copied_ = buckets_;
  shard_->begin_snapshot(snapshots_begun_, entries, target_);
}

}  // namespace syncopate::ps
