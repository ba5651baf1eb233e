#include "tests/ps/shard/shard_model.h"

#include <algorithm>

#include "models/optim/outer_rule.h"

namespace syncopate::ps {

ModelBucket::ModelBucket(const ConsistencyOptions& options, int workers)
    : options_(options),
      workers_(static_cast<std::size_t>(workers)),
      history_(1, std::vector<float>(static_cast<std::size_t>(workers))) {}

bool ModelBucket::may_read(const ModelRequest& request) {
  const Worker& reader = worker(request.worker);
  if (reader.done < request.after) return false;
  return options_.consistency != Consistency::kSsp ||
         std::ranges::all_of(workers_, [&](const Worker& other) {
           return !other.is_awaited() || other.clock() >= reader.clock() - options_.max_staleness;
         });
}

std::string ModelBucket::apply(ModelRequest& push, const ShardEvent& event,
                               std::int64_t all_samples) {
  if (push.is_duplicate) return "a duplicate was applied";
  if (push.is_consumed) return "a push was applied twice";
  push.is_consumed = true;
  const bool is_sync = options_.consistency == Consistency::kSync;
  const bool merges = options_.consistency == Consistency::kQuorum;
  if (event.version == version() + 1) {
    history_.push_back(history_.back());
    last_update_pushes_ = 0;
  } else if (!(is_sync || merges) || event.version != version()) {
    return "version " + std::to_string(event.version) + " after " + std::to_string(version());
  }
  ++last_update_pushes_;
  if (is_sync && push.version + 1 != event.version) return "a late gradient was applied";
  if (event.staleness != event.version - 1 - push.version) return "wrong staleness";
  const float weight = merges ? displacement_weight(push.samples, all_samples) : 1.0F;
  for (std::size_t i = 0; i < push.gradient.size(); ++i) {
    history_.back()[i] -= weight * push.gradient[i];
  }
  Worker& from = worker(push.worker);
  if (from.incarnation != push.incarnation) return "";
  if (push.sequence <= from.done) return "pushes were applied out of order";
  from.done = push.sequence;
  return "";
}

std::string ModelBucket::drop(ModelRequest& push) {
  if (push.is_consumed) return "a push was dropped after it was consumed";
  push.is_consumed = true;
  if (push.is_duplicate) return "";
  if (options_.consistency != Consistency::kSync) return "a push was dropped without need";
  if (push.version >= version()) return "a push was dropped that is not late";
  Worker& from = worker(push.worker);
  if (from.incarnation == push.incarnation) from.done = std::max(from.done, push.sequence);
  return "";
}

std::string ModelBucket::answer(const ModelRequest& request, const ShardEvent& event) {
  if (!request.wants_values) return "an answer to who wanted none";
  if (request.is_push && !request.is_consumed) return "an answer before the push was consumed";
  if (event.version != version()) return "an answer of another version";
  if (request.values != values()) return "values that are not those of their version";
  const Worker& reader = worker(request.worker);
  if (!reader.is_active || reader.incarnation != request.incarnation) return "";
  return may_read(request) ? "" : "an answer that the rule forbids";
}

std::string ModelBucket::check_snapshot(const std::map<WorkerId, WorkerClock>& entries,
                                        const ShardSnapshot& copy, BucketId bucket) {
  const auto elements = static_cast<std::int64_t>(workers_.size());
  const Tensor part = copy.values.rows(bucket * elements, (bucket + 1) * elements);
  if (!std::ranges::equal(part.f32(), values())) return "a snapshot has other values";
  const ShardSnapshot::Variable& state = copy.buckets[static_cast<std::size_t>(bucket)];
  if (state.version != version()) return "a snapshot has another version";
  for (const WorkerClock& clock : state.workers) {
    const Worker& member = worker(clock.worker);
    const auto entry = entries.find(clock.worker);
    const bool is_named = entry != entries.end() && entry->second.incarnation == clock.incarnation;
    if (clock.incarnation != member.incarnation) continue;  // the worker joined during the copy
    if (clock.sequence != member.done) return "a snapshot has another clock";
    if (!is_named && clock.sequence % 10 != 0)
      return "a snapshot has a push of a worker without a clock";
    if (is_named && clock.sequence > entry->second.sequence) return "a snapshot has a later push";
    if (is_named && member.is_active && member.accepted <= entry->second.sequence &&
        clock.sequence != entry->second.sequence) {
      return "a snapshot lacks a push";
    }
  }
  return "";
}

}  // namespace syncopate::ps
