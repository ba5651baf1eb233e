// ShardSchedule: what the shard says, and how a schedule ends.
#include <algorithm>

#include "tests/ps/shard/shard_schedule.h"

namespace syncopate::ps {

namespace {

constexpr int kMostRounds = 200;

}  // namespace

using Kind = ShardEvent::Kind;

void ShardSchedule::hear(int bucket, const std::vector<ShardEvent>& events) {
  if (events.empty()) return;
  for (const ShardEvent& event : events) hear(event);
  const bool is_update = std::ranges::any_of(
      events, [](const ShardEvent& event) { return event.kind == Kind::kApplied; });
  if (!is_update) return;
  ++tally_.updates;
  if (is_plain_sync() &&
      models_[static_cast<std::size_t>(bucket)].last_update_pushes() != workers_) {
    expect("a synchronous update without all workers");
  }
}

void ShardSchedule::hear(const ShardEvent& event) {
  ModelBucket& model = models_[static_cast<std::size_t>(event.bucket)];
  if (event.order != heard_[static_cast<std::size_t>(event.bucket)]++) {
    expect("events out of order");
  }
  if (event.kind == Kind::kSnapshotCopied) {
    if (cut_ != Cut::kCutting || event.token != cuts_begun_) return;  // given up
    ++tally_.cuts;
    expect(model.check_cut(entries_, *copy_, event.bucket));
    if (--uncut_ == 0) cut_ = Cut::kNone;
    return;
  }
  ModelRequest& request = requests_[event.token];
  Client& client = clients_[static_cast<std::size_t>(request.worker)];
  const bool is_current = client.is_active && client.incarnation == request.incarnation;
  if (request.is_closed) return expect("an event after the last");
  if (event.worker != request.worker || event.bucket != request.bucket ||
      event.sequence != request.sequence) {
    return expect("an event of something else");
  }
  switch (event.kind) {
    case Kind::kApplied:
      expect(model.apply(request, event));
      request.is_closed = !request.wants_values;
      break;
    case Kind::kDropped:
      if (!request.is_duplicate) ++tally_.late;
      if (event.is_duplicate != request.is_duplicate) expect("late taken for known");
      expect(model.drop(request));
      request.is_closed = !request.wants_values;
      break;
    case Kind::kAnswered:
      expect(model.answer(request, event));
      request.is_closed = true;
      if (is_current && !request.is_duplicate) {
        --client.answers;
        client.versions[static_cast<std::size_t>(event.bucket)] = event.version;
      }
      break;
    case Kind::kForgotten:
      // A worker may have left and come back since.
      if (is_current && !request.is_consumed && request.is_push) expect("a push was forgotten");
      request.is_closed = true;
      break;
    case Kind::kSnapshotCopied:
      break;
  }
}

// Nothing is due: then nobody waits whom the rule would let go.
void ShardSchedule::check_idle(int bucket) {
  ModelBucket& model = models_[static_cast<std::size_t>(bucket)];
  if (!std::ranges::equal(shard_->view(bucket).values, model.values())) {
    expect("the values are not the sum of what was applied");
  }
  for (const ModelRequest& request : requests_) {
    if (request.is_closed || request.bucket != bucket) continue;
    const Client& client = clients_[static_cast<std::size_t>(request.worker)];
    if (request.is_push && !request.is_consumed) {
      if (request.is_duplicate) expect("a duplicate waits");
      if (options_.consistency != Consistency::kSync && cut_ == Cut::kNone) {
        expect("a push waits for nothing");
      }
    } else if (!client.is_active || client.incarnation != request.incarnation) {
      expect("an answer is still due to one that is gone");
    } else if (model.may_read(request)) {
      expect("somebody waits for values that it may read");
    } else {
      ++tally_.answers_that_waited;
    }
  }
}

bool ShardSchedule::wants_to_go_on(int worker) {
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  if (!can_push(client)) return false;
  if (client.pushed > 0) return true;
  if (cut_ != Cut::kCutting) return true;
  const auto entry = entries_.find(worker);
  return entry != entries_.end() && entry->second.incarnation == client.incarnation &&
         std::ranges::any_of(models_, [&](ModelBucket& model) {
           return model.worker(worker).done < entry->second.sequence;
         });
}

// All go on until everybody has been answered who waits now, however they stand.
void ShardSchedule::finish() {
  if (cut_ == Cut::kFrozen) cut();
  drain();
  const auto asked = static_cast<std::ptrdiff_t>(requests_.size());
  for (int round = 0; round < kMostRounds && failure_.empty(); ++round) {
    const bool all_answered =
        std::all_of(requests_.begin(), requests_.begin() + asked,
                    [](const ModelRequest& request) { return request.is_closed; });
    if (all_answered && cut_ == Cut::kNone) return;
    for (int worker = 0; worker < workers_; ++worker) {
      if (wants_to_go_on(worker)) push(worker);
    }
    drain();
  }
  expect(cut_ == Cut::kNone ? "somebody is never answered" : "a cut is never made");
}

}  // namespace syncopate::ps
