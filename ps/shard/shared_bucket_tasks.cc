// SharedBucket: which piece of work comes next, and what its end means.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "ps/shard/shared_bucket.h"

namespace syncopate::ps {

using Kind = BucketTask::Kind;

void SharedBucket::begin_next() {
  // Events alone make way for work, which delivers them as well.
  const bool is_free =
      task_.kind == Kind::kNone || (task_.kind == Kind::kDeliver && !task_.is_taken);
  if (!is_free) return;
  task_.kind = Kind::kNone;
  drop_late_pushes();
  // Readers before the next update: they would only get values that are newer, and later.
  if (begin_cut() || begin_copies() || begin_update()) return;
  if (!events_.empty()) begin(Kind::kDeliver);
}

void SharedBucket::begin(Kind kind) {
  task_.kind = kind;
  ++task_.id;
  task_.claimed = 0;
  task_.done = 0;
  task_.is_taken = false;
}

// Those that a cut lets begin, so that it has all that it names.
void SharedBucket::drop_late_pushes() {
  std::erase_if(waiting_, [&](const PushRequest& push) {
    if (!rule_.is_late(push, version_) || !rule_.may_begin(push.id)) return false;
    rule_.advance(push.id);
    say(ShardEvent::Kind::kDropped, push.id, push.token);
    answer_later(push);
    return true;
  });
}

void SharedBucket::answer_later(const PushRequest& push) {
  if (push.values.empty()) return;
  if (!rule_.takes_part(push.id.worker, push.id.incarnation)) {
    say(ShardEvent::Kind::kForgotten, push.id, push.token);
    return;
  }
  reads_.push_back({.after = push.id.sequence,
                    .destination = {.worker = push.id.worker,
                                    .incarnation = push.id.incarnation,
                                    .sequence = push.id.sequence,
                                    .token = push.token,
                                    .values = push.values}});
}

bool SharedBucket::begin_cut() {
  if (cut_.copy == nullptr || !rule_.has_reached_limits()) return false;
  // Of a worker that has left; the rule finds it due.
  if (std::ranges::any_of(waiting_,
                          [&](const PushRequest& push) { return rule_.may_begin(push.id); })) {
    return false;
  }
  begin(Kind::kCut);
  task_.cut = std::exchange(cut_, {});
  held_for_ = 0;
  // Now, not at the end: workers may join and another cut may begin meanwhile.
  task_.cut.copy->buckets[static_cast<std::size_t>(bucket_)] = {version_, rule_.clocks()};
  rule_.release();
  return true;
}

bool SharedBucket::begin_copies() {
  take_reads();
  if (task_.destinations.empty()) return false;
  begin(Kind::kCopy);
  return true;
}

bool SharedBucket::begin_update() {
  chosen_.clear();
  rule_.choose(waiting_, version_, chosen_);
  if (chosen_.empty()) return false;
  begin(Kind::kUpdate);
  task_.pushes.clear();
  for (const std::size_t i : chosen_) task_.pushes.push_back(waiting_[i]);
  for (auto i = chosen_.rbegin(); i != chosen_.rend(); ++i) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(*i));
  }
  // The order of additions is by worker, not by arrival.
  std::ranges::sort(task_.pushes, {}, [](const PushRequest& push) { return push.id.worker; });
  task_.gradients.clear();
  for (const PushRequest& push : task_.pushes) {
    task_.gradients.push_back(push.gradient);
    rule_.advance(push.id);
  }
  task_.step = {.learning_rate = task_.pushes.front().learning_rate,
                .step = static_cast<std::int64_t>(version_)};
  task_.compensation = {};
  if (task_.pushes.size() == 1) mind_staleness(task_.pushes.front());
  // Who may read once these are applied is answered in the same pass, whatever it waited for.
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

std::uint64_t SharedBucket::staleness_of(const PushRequest& push) const noexcept {
  return is_ours(push.version) ? version_ - push.version : 0;
}

void SharedBucket::mind_staleness(const PushRequest& push) {
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
  std::erase_if(reads_, [&](const WaitingRead& read) {
    if (!rule_.may_read(read.destination.worker, read.after)) return false;
    task_.destinations.push_back(read.destination);
    return true;
  });
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
    if (is_ours(push.version)) staleness_[push.id.worker].add(staleness);
    say(ShardEvent::Kind::kApplied, push.id, push.token);
    events_.back().staleness = staleness;
    events_.back().version = version_ + 1;
  }
  ++version_;
  for (const auto& [id, token] : task_.unanswered) say(ShardEvent::Kind::kForgotten, id, token);
}

void SharedBucket::answer() {
  for (const Destination& to : task_.destinations) {
    if (!to.read_copy.empty()) {
      ReadCopy& copy = read_copies_[to.worker];
      copy.incarnation = to.incarnation;
      copy.version = version_;
    }
    say(ShardEvent::Kind::kAnswered, {to.worker, to.incarnation, to.sequence}, to.token);
  }
  task_.destinations.clear();
}

}  // namespace syncopate::ps
