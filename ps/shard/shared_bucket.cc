#include "ps/shard/shared_bucket.h"

#include <algorithm>
#include <cstddef>

namespace syncopate::ps {

using Kind = BucketTask::Kind;

SharedBucket::SharedBucket(BucketId bucket, std::int64_t elements,
                           const ConsistencyOptions& consistency)
    : bucket_(bucket), elements_(elements), rule_(consistency) {}

void SharedBucket::say(ShardEvent::Kind kind, const PushId& id, std::uint64_t token) {
  events_.push_back({.kind = kind,
                     .bucket = bucket_,
                     .worker = id.worker,
                     .sequence = id.sequence,
                     .token = token,
                     .version = version_,
                     .order = next_order_++});
}

void SharedBucket::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                        std::int64_t offset) {
  rule_.join(worker, incarnation, sequence, offset);
  if (!rule_.takes_part(worker, incarnation)) return;
  const auto is_of_an_earlier_one = [&](WorkerId other, std::uint32_t its) {
    return other == worker && its != incarnation;
  };
  std::erase_if(waiting_, [&](const PushRequest& push) {
    if (!is_of_an_earlier_one(push.id.worker, push.id.incarnation)) return false;
    say(ShardEvent::Kind::kForgotten, push.id, push.token);
    return true;
  });
  std::erase_if(reads_, [&](const WaitingRead& read) {
    const Destination& to = read.destination;
    if (!is_of_an_earlier_one(to.worker, to.incarnation)) return false;
    say(ShardEvent::Kind::kForgotten, {to.worker, to.incarnation, to.sequence}, to.token);
    return true;
  });
  begin_next();
}

void SharedBucket::leave(WorkerId worker, std::uint32_t incarnation) {
  if (!rule_.takes_part(worker, incarnation)) return;
  rule_.leave(worker, incarnation);
  std::erase_if(reads_, [&](const WaitingRead& read) {
    const Destination& to = read.destination;
    if (to.worker != worker) return false;
    say(ShardEvent::Kind::kForgotten, {to.worker, to.incarnation, to.sequence}, to.token);
    return true;
  });
  begin_next();
}

void SharedBucket::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  rule_.rest(worker, incarnation, sequence);
  begin_next();
}

void SharedBucket::set_consistency(const ConsistencyOptions& consistency) {
  rule_.set_options(consistency);
  begin_next();
}

bool SharedBucket::push(const PushRequest& request) {
  if (!rule_.takes_part(request.id.worker, request.id.incarnation)) return false;
  was_pushed_to_ = true;
  if (rule_.accept(request.id)) {
    waiting_.push_back(request);
  } else {
    say(ShardEvent::Kind::kDropped, request.id, request.token);
    events_.back().is_duplicate = true;
    answer_later(request);
  }
  begin_next();
  return true;
}

bool SharedBucket::read(const ReadRequest& request) {
  if (!rule_.takes_part(request.worker, request.incarnation)) return false;
  reads_.push_back({.after = rule_.accepted(request.worker),
                    .destination = {.worker = request.worker,
                                    .incarnation = request.incarnation,
                                    .token = request.token,
                                    .values = request.values}});
  begin_next();
  return true;
}

std::optional<SharedBucket::Part> SharedBucket::claim(std::int64_t most_elements) {
  if (task_.kind == Kind::kNone) return std::nullopt;
  if (task_.kind == Kind::kDeliver) {
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
  if (task_.kind == Kind::kDeliver) return part.begin == 0 && part.end == 0;
  return task_.kind != Kind::kNone && part.begin >= 0 && part.begin < part.end &&
         part.end <= task_.claimed;
}

void SharedBucket::finish(Part part, std::vector<ShardEvent>& events) {
  task_.done += part.end - part.begin;
  if (task_.kind != Kind::kDeliver && task_.done != elements_) return;
  if (task_.kind == Kind::kUpdate) end_update();
  if (task_.kind == Kind::kCut) {
    say(ShardEvent::Kind::kCutCopied, {}, task_.cut.number);
    task_.cut = {};
  }
  answer();
  task_.kind = Kind::kNone;
  events.insert(events.end(), events_.begin(), events_.end());
  events_.clear();
  begin_next();
}

void SharedBucket::hold(std::uint64_t number) {
  held_for_ = number;
  cut_ = {};
  rule_.hold();
}

void SharedBucket::limit(std::span<const CutEntry> entries) {
  rule_.limit(entries);
  begin_next();
}

void SharedBucket::cut(std::span<const CutEntry> entries, const CutOrder& order) {
  // Abandoned meanwhile: it would let go what the next one holds.
  if (order.number != held_for_) return;
  rule_.limit(entries);
  cut_ = order;
  begin_next();
}

void SharedBucket::thaw() {
  held_for_ = 0;
  cut_ = {};
  rule_.release();
  begin_next();
}

void SharedBucket::restore(const ShardState::Variable& state) {
  rule_.restore(state.workers);
  version_ = state.version;
  waiting_.clear();
  reads_.clear();
  events_.clear();
  task_.kind = Kind::kNone;
  held_for_ = 0;
  cut_ = {};
  read_copies_.clear();
  mean_square_.clear();
  was_pushed_to_ = false;
}

bool SharedBucket::rewrite(std::uint64_t version) {
  if (version == 0 || was_pushed_to_ || is_at_work() || task_.kind == Kind::kCut) return false;
  version_ = version;
  // Not erased: a copy to one that waits to be taken writes to it.
  for (auto& [worker, copy] : read_copies_) copy.version = 0;
  return true;
}

}  // namespace syncopate::ps
