#include "ps/shard/shared_bucket.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "models/optim/outer_rule.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate::ps {

using TaskKind = BucketTask::Kind;

namespace {

std::vector<PushId> ids_of(const std::vector<PushRequest>& pushes) {
  std::vector<PushId> ids;
  ids.reserve(pushes.size());
  for (const PushRequest& push : pushes) ids.push_back(push.id);
  return ids;
}

}  // namespace

SharedBucket::SharedBucket(BucketId bucket, std::int64_t elements, ConsistencyRule rule,
                           StalenessCounts& staleness, MergeLog* merges)
    : bucket_(bucket),
      elements_(elements),
      rule_(std::move(rule)),
      staleness_(staleness),
      merges_(merges) {}

void SharedBucket::add_event(ShardEvent::Kind kind, const PushId& id, std::uint64_t token) {
  events_.push_back({.kind = kind,
                     .bucket = bucket_,
                     .worker = id.worker,
                     .sequence = id.sequence,
                     .token = token,
                     .version = version_});
}

void SharedBucket::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                        std::int64_t offset) {
  rule_.join(worker, incarnation, sequence, offset);
  if (!rule_.takes_part(worker, incarnation)) return;
  const auto is_of_an_earlier_one = [&](WorkerId other, std::uint32_t its) {
    return other == worker && its != incarnation;
  };
  cancel_pushes([&](const PushId& id) { return is_of_an_earlier_one(id.worker, id.incarnation); });
  cancel_reads(
      [&](const Destination& to) { return is_of_an_earlier_one(to.worker, to.incarnation); });
  begin_next();
}

void SharedBucket::leave(WorkerId worker, std::uint32_t incarnation, std::uint64_t last_kept) {
  if (!rule_.takes_part(worker, incarnation)) return;
  rule_.leave(worker, incarnation);
  cancel_pushes([&](const PushId& id) { return id.worker == worker && id.sequence > last_kept; });
  cancel_reads([&](const Destination& to) { return to.worker == worker; });
  begin_next();
}

void SharedBucket::cancel_pushes(const std::function<bool(const PushId&)>& is_void) {
  std::erase_if(waiting_, [&](const PushRequest& push) {
    if (!is_void(push.id)) return false;
    add_event(ShardEvent::Kind::kCancelled, push.id, push.token);
    return true;
  });
}

void SharedBucket::cancel_reads(const std::function<bool(const Destination&)>& is_void) {
  for (const Destination& to : reads_.remove_if(is_void)) {
    add_event(ShardEvent::Kind::kCancelled, {to.worker, to.incarnation, to.sequence}, to.token);
  }
}

void SharedBucket::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  rule_.rest(worker, incarnation, sequence);
  begin_next();
}

bool SharedBucket::push(const PushRequest& request) {
  if (!rule_.takes_part(request.id.worker, request.id.incarnation)) return false;
  was_pushed_to_ = true;
  now_ = std::max(now_, request.arrived);
  if (rule_.accept(request.id)) {
    waiting_.push_back(request);
    may_have_late_pushes_ = may_have_late_pushes_ || rule_.is_late(request, version_);
  } else {
    add_event(ShardEvent::Kind::kDropped, request.id, request.token);
    events_.back().is_duplicate = !rule_.is_restored(request.id);
    answer_later(request);
  }
  begin_next();
  return true;
}

bool SharedBucket::read(const ReadRequest& request) {
  if (!rule_.takes_part(request.worker, request.incarnation)) return false;
  reads_.add({.worker = request.worker,
              .incarnation = request.incarnation,
              .token = request.token,
              .values = request.values},
             rule_.accepted(request.worker));
  begin_next();
  return true;
}

std::optional<ShardTime> SharedBucket::next_deadline() const {
  if (follows_merges()) return std::nullopt;
  const auto due = rule_.merge_time(waiting_);
  // A push that is due already waits only for the end of the task under way.
  return due && *due > now_ ? due : std::nullopt;
}

void SharedBucket::advance_to(ShardTime now) {
  now_ = std::max(now_, now);
  begin_next();
}

std::optional<SharedBucket::Part> SharedBucket::claim(std::int64_t most_elements) {
  if (follows_merges()) begin_next();  // bucket 0 may have decided a merge
  if (task_.kind == TaskKind::kNone) return std::nullopt;
  if (task_.kind == TaskKind::kDeliver) {
    if (task_.is_taken) return std::nullopt;
    task_.is_taken = true;
    return Part{};
  }
  const std::int64_t left = elements_ - task_.claimed;
  if (left == 0) return std::nullopt;
  task_.is_taken = true;
  const Part part{task_.claimed, task_.claimed + std::min(left, most_elements)};
  task_.claimed = part.end;
  return part;
}

bool SharedBucket::is_under_way(std::uint64_t task, Part part) const noexcept {
  if (task_.id != task || !task_.is_taken) return false;
  if (task_.kind == TaskKind::kDeliver) return part.begin == 0 && part.end == 0;
  return task_.kind != TaskKind::kNone && part.begin >= 0 && part.begin < part.end &&
         part.end <= task_.claimed;
}

void SharedBucket::finish(Part part, std::vector<ShardEvent>& events) {
  task_.done += part.end - part.begin;
  if (task_.kind != TaskKind::kDeliver && task_.done != elements_) return;
  if (task_.kind == TaskKind::kUpdate) end_update();
  if (task_.kind == TaskKind::kSnapshot) {
    add_event(ShardEvent::Kind::kSnapshotCopied, {}, task_.snapshot.number);
    task_.snapshot = {};
  }
  answer();
  task_.kind = TaskKind::kNone;
  events.insert(events.end(), events_.begin(), events_.end());
  events_.clear();
  begin_next();
}

void SharedBucket::hold(std::uint64_t number) {
  held_for_ = number;
  snapshot_ = {};
  rule_.hold();
}

void SharedBucket::limit(std::span<const WorkerClock> clocks) {
  rule_.limit(clocks);
  may_have_late_pushes_ = true;
  begin_next();
}

void SharedBucket::begin_snapshot(std::span<const WorkerClock> clocks, const SnapshotOrder& order) {
  // A withdrawn snapshot must not release a bucket that is held for the next snapshot.
  if (order.number != held_for_) return;
  rule_.limit(clocks);
  may_have_late_pushes_ = true;
  snapshot_ = order;
  begin_next();
}

void SharedBucket::thaw() {
  held_for_ = 0;
  snapshot_ = {};
  rule_.release();
  may_have_late_pushes_ = true;
  begin_next();
}

void SharedBucket::restore(const ShardSnapshot::Variable& snapshot) {
  rule_.restore(snapshot.workers);
  version_ = snapshot.version;
  waiting_.clear();
  reads_.clear();
  events_.clear();
  task_.kind = TaskKind::kNone;
  held_for_ = 0;
  snapshot_ = {};
  read_copies_.clear();
  mean_square_.clear();
  was_pushed_to_ = false;
  next_merge_ = 0;
}

bool SharedBucket::set_version(std::uint64_t version) {
  if (version == 0 || was_pushed_to_ || is_at_work() || task_.kind == TaskKind::kSnapshot)
    return false;
  version_ = version;
  may_have_late_pushes_ = true;
  // The copies of read values become invalid but keep their memory: a task that no thread has
  // claimed yet may write to it.
  for (auto& [worker, copy] : read_copies_) copy.version = 0;
  return true;
}

void SharedBucket::begin_next() {
  // A task that only delivers events gives way to a task with work, which delivers the events too.
  const bool is_free =
      task_.kind == TaskKind::kNone || (task_.kind == TaskKind::kDeliver && !task_.is_taken);
  if (!is_free) return;
  task_.kind = TaskKind::kNone;
  drop_late_pushes();
  // Reads come before the bucket's next update: waiting for the update would delay them.
  if (begin_snapshot_copy() || begin_copies() || begin_update()) return;
  if (!events_.empty()) begin(TaskKind::kDeliver);
}

void SharedBucket::begin(TaskKind kind) {
  task_.kind = kind;
  ++task_.id;
  task_.claimed = 0;
  task_.done = 0;
  task_.is_taken = false;
}

// Drops late pushes, but not pushes beyond the limits of a snapshot: a dropped push advances its
// worker's clock, and the snapshot must contain exactly the clocks that it names.
void SharedBucket::drop_late_pushes() {
  // Under sync, 1,000 workers' pushes wait: they are looked at again when one of them may be late.
  if (!std::exchange(may_have_late_pushes_, false)) return;
  std::erase_if(waiting_, [&](const PushRequest& push) {
    if (!rule_.is_late(push, version_) || !rule_.snapshot_lets_begin(push.id)) return false;
    advance(push.id);
    add_event(ShardEvent::Kind::kDropped, push.id, push.token);
    answer_later(push);
    return true;
  });
}

void SharedBucket::answer_later(const PushRequest& push) {
  if (push.values.empty()) return;
  if (!rule_.takes_part(push.id.worker, push.id.incarnation)) {
    add_event(ShardEvent::Kind::kCancelled, push.id, push.token);
    return;
  }
  reads_.add({.worker = push.id.worker,
              .incarnation = push.id.incarnation,
              .sequence = push.id.sequence,
              .token = push.token,
              .values = push.values},
             push.id.sequence);
}

void SharedBucket::advance(const PushId& id) {
  rule_.advance(id);
  reads_.on_advanced(id.worker);
}

bool SharedBucket::begin_snapshot_copy() {
  if (snapshot_.target == nullptr || !rule_.has_reached_limits()) return false;
  // A snapshot includes the waiting pushes of workers that have left, too.
  if (std::ranges::any_of(
          waiting_, [&](const PushRequest& push) { return rule_.snapshot_lets_begin(push.id); })) {
    return false;
  }
  begin(TaskKind::kSnapshot);
  task_.snapshot = std::exchange(snapshot_, {});
  held_for_ = 0;
  // Records the clocks now: while the bucket is being copied, workers may join and a new snapshot
  // may begin.
  task_.snapshot.target->buckets[static_cast<std::size_t>(bucket_)] = {version_, rule_.clocks()};
  rule_.release();
  may_have_late_pushes_ = true;
  return true;
}

bool SharedBucket::begin_copies() {
  take_reads();
  if (task_.destinations.empty()) return false;
  begin(TaskKind::kCopy);
  return true;
}

void SharedBucket::choose() {
  chosen_.clear();
  if (!follows_merges()) return rule_.choose(waiting_, version_, now_, chosen_);
  while (!choose_merged()) {
  }
}

bool SharedBucket::choose_merged() {
  const auto merge = merges_->find(next_merge_);
  if (!merge) return true;
  for (const PushId& id : *merge) {
    const auto push = std::ranges::find_if(waiting_, [&](const PushRequest& one) {
      return one.id.worker == id.worker && one.id.incarnation == id.incarnation &&
             one.id.sequence == id.sequence;
    });
    if (push != waiting_.end() && rule_.snapshot_lets_begin(id)) {
      chosen_.push_back(static_cast<std::size_t>(push - waiting_.begin()));
    } else if (push != waiting_.end() || rule_.takes_part(id.worker, id.incarnation)) {
      chosen_.clear();
      return true;
    }
  }
  merges_->take(next_merge_++);
  std::ranges::sort(chosen_);
  return !chosen_.empty();
}

bool SharedBucket::begin_update() {
  choose();
  if (chosen_.empty()) return false;
  begin(TaskKind::kUpdate);
  task_.pushes.clear();
  for (const std::size_t i : chosen_) task_.pushes.push_back(waiting_[i]);
  for (auto i = chosen_.rbegin(); i != chosen_.rend(); ++i) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(*i));
  }
  // Gradients are added in the order of worker numbers, not of arrival.
  std::ranges::sort(task_.pushes, {}, [](const PushRequest& push) { return push.id.worker; });
  task_.gradients.clear();
  for (const PushRequest& push : task_.pushes) {
    task_.gradients.push_back(push.gradient);
    advance(push.id);
  }
  if (merges_ != nullptr) weigh();
  if (merges_ != nullptr && !follows_merges()) merges_->add(ids_of(task_.pushes));
  task_.step = {.learning_rate = task_.pushes.front().learning_rate,
                .step = static_cast<std::int64_t>(version_),
                .read = static_cast<std::int64_t>(task_.pushes.front().version)};
  task_.compensation = {};
  if (task_.pushes.size() == 1) compensate_staleness(task_.pushes.front());
  // The pass that updates values also answers every read that the update's pushes make possible.
  task_.unanswered.clear();
  for (const PushRequest& push : task_.pushes) {
    if (push.values.empty()) continue;
    if (rule_.takes_part(push.id.worker, push.id.incarnation)) {
      answer_later(push);
    } else {
      task_.unanswered.push_back({push.id, push.token});
    }
  }
  take_reads();
  return true;
}

void SharedBucket::weigh() {
  task_.weights.clear();
  std::int64_t samples = 0;
  for (const PushRequest& push : task_.pushes) samples += push.samples;
  for (const PushRequest& push : task_.pushes) {
    task_.weights.push_back(displacement_weight(push.samples, samples));
  }
}

std::uint64_t SharedBucket::staleness_of(const PushRequest& push) const noexcept {
  if (!is_known_version(push.version)) return 0;
  const auto gradients = static_cast<std::uint64_t>(gradients_per_update(rule_.options()));
  return (version_ - 1) / gradients - (push.version - 1) / gradients;
}

void SharedBucket::compensate_staleness(const PushRequest& push) {
  const ConsistencyOptions& options = rule_.options();
  const std::uint64_t staleness = staleness_of(push);
  if (options.staleness_rule == StalenessRule::kInverse && staleness > 1) {
    task_.step.learning_rate /= static_cast<float>(staleness);
  }
  if (!compensates()) return;
  task_.compensation.lambda = options.compensation;
  task_.compensation.mean_square_decay = options.mean_square_decay;
  if (options.staleness_rule == StalenessRule::kDelayCompensationAdaptive) {
    mean_square_.resize(static_cast<std::size_t>(elements_));
    task_.compensation.mean_square = mean_square_;
  }
  const auto copy = read_copies_.find(push.id.worker);
  if (staleness > 0 && copy != read_copies_.end() && copy->second.version == push.version &&
      copy->second.incarnation == push.id.incarnation) {
    task_.compensation.read = copy->second.values;
  }
}

bool SharedBucket::compensates() const noexcept {
  const StalenessRule rule = rule_.options().staleness_rule;
  return rule == StalenessRule::kDelayCompensation ||
         rule == StalenessRule::kDelayCompensationAdaptive;
}

void SharedBucket::take_reads() {
  task_.destinations.clear();
  reads_.take_due(rule_, task_.destinations);
  if (!compensates()) return;
  for (Destination& to : task_.destinations) {
    ReadCopy& copy = read_copies_[to.worker];
    copy.values.resize(static_cast<std::size_t>(elements_));
    to.read_copy = copy.values;
  }
}

void SharedBucket::end_update() {
  for (const PushRequest& push : task_.pushes) {
    const std::uint64_t staleness = staleness_of(push);
    if (is_known_version(push.version)) staleness_.add(push.id.worker, staleness);
    add_event(ShardEvent::Kind::kApplied, push.id, push.token);
    events_.back().staleness = staleness;
    events_.back().version = version_ + 1;
  }
  ++version_;
  may_have_late_pushes_ = true;
  for (const auto& [id, token] : task_.unanswered)
    add_event(ShardEvent::Kind::kCancelled, id, token);
}

void SharedBucket::answer() {
  for (const Destination& to : task_.destinations) {
    if (!to.read_copy.empty()) {
      ReadCopy& copy = read_copies_[to.worker];
      copy.incarnation = to.incarnation;
      copy.version = version_;
    }
    add_event(ShardEvent::Kind::kAnswered, {to.worker, to.incarnation, to.sequence}, to.token);
  }
  task_.destinations.clear();
}

}  // namespace syncopate::ps
