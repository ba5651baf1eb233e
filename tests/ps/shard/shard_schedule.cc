#include "tests/ps/shard/shard_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/optim/optimizer.h"
#include "tests/ps/shard/shard_case.h"

namespace syncopate::ps {
namespace {

constexpr int kActs = 80;
constexpr int kActsPerWorker = 3;
constexpr int kMostRounds = 200;

}  // namespace

ShardSchedule::ShardSchedule(std::uint64_t number, int workers) : random_(5, number) {
  workers_ = workers == 0 ? 2 + below(3) : workers;
  buckets_ = 1 + below(3);
  options_.consistency = static_cast<Consistency>(below(4));
  if (options_.consistency == Consistency::kSync) options_.backup_workers = below(workers_);
  if (options_.consistency == Consistency::kSsp) options_.max_staleness = below(4);
  if (options_.consistency == Consistency::kQuorum) {
    options_.quorum = below(workers_ + 1);
    options_.grace = 1e-9 * below(20);
  }
  const std::int64_t total = std::int64_t{buckets_} * workers_;
  std::vector<Bucket> buckets;
  for (int b = 0; b < buckets_; ++b) {
    buckets.push_back({std::int64_t{b} * workers_, std::int64_t{b + 1} * workers_});
    models_.emplace_back(options_, workers_);
  }
  shard_.emplace(ArenaLayout({{.name = "values", .shape = {total}}}), buckets, make_optimizer({}),
                 options_, make_host_tensor({total}, DType::kF32));
  pieces_.resize(static_cast<std::size_t>(buckets_));
  clients_.resize(static_cast<std::size_t>(workers_));
  for (int worker = 0; worker < workers_; ++worker) join(worker, true);
}

std::string ShardSchedule::describe() const {
  return "rule " + std::to_string(static_cast<int>(options_.consistency)) + ", bound " +
         std::to_string(options_.max_staleness) + ", backups " +
         std::to_string(options_.backup_workers) + ", quorum " + std::to_string(options_.quorum) +
         ", grace " + std::to_string(options_.grace) + ", workers " + std::to_string(workers_) +
         ", buckets " + std::to_string(buckets_);
}

int ShardSchedule::below(int bound) {
  return static_cast<int>(random_.below(drawn_++, static_cast<std::uint32_t>(bound)));
}

void ShardSchedule::expect(const std::string& failure) {
  if (failure_.empty()) failure_ = failure;
}

std::string ShardSchedule::run() {
  const int acts = std::max(kActs, kActsPerWorker * workers_);
  for (int i = 0; i < acts && failure_.empty(); ++i) act();
  if (failure_.empty()) finish();
  return failure_;
}

void ShardSchedule::act() {
  now_ += ShardTime(1);
  if (options_.consistency == Consistency::kQuorum && one_in(4)) shard_->advance_to(now_);
  const int worker = below(workers_);
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  const int bucket = below(buckets_);
  const int draw = below(100);
  if (draw < 45) {
    if (can_push(client)) push(worker);
  } else if (draw < 50) {
    push_again(worker);
  } else if (draw < 53) {
    if (client.is_active) read(worker, bucket);
  } else if (draw < 55) {
    if (client.is_active && client.pushed == 0 && !is_plain_sync()) rest(worker);
  } else if (draw < 70) {
    claim(bucket);
  } else if (draw < 85) {
    update_one(bucket);
  } else if (draw < 93) {
    drain(bucket);
  } else if (draw < 97) {
    // A synchronous job without backup workers ends with a lost worker, so no worker leaves or
    // joins.
    if (is_plain_sync()) return;
    if (draw >= 95) {
      join(worker, client.is_active || one_in(2));
    } else if (client.is_active) {
      leave(worker);
    }
  } else if (phase_ == Phase::kNone) {
    freeze();
  } else if (phase_ == Phase::kFrozen) {
    begin_snapshot();
  } else if (one_in(4)) {
    shard_->thaw();
    phase_ = Phase::kNone;
  }
}

bool ShardSchedule::can_push(const Client& client) const {
  return client.is_active && (client.pushed > 0 || client.answers == 0);
}

void ShardSchedule::push(int worker) {
  Client& client = clients_[static_cast<std::size_t>(worker)];
  if (client.pushed == 0) {
    for (int b = buckets_ - 1; b > 0; --b) {
      std::swap(client.order[static_cast<std::size_t>(b)],
                client.order[static_cast<std::size_t>(below(b + 1))]);
    }
  }
  const int bucket = client.order[static_cast<std::size_t>(client.pushed)];
  const bool reads_itself = one_in(5);
  ModelBucket& model = models_[static_cast<std::size_t>(bucket)];
  if (model.worker(worker).rests) wake_model(worker);
  const std::size_t token = requests_.size();
  ModelRequest& request = requests_.emplace_back();
  request = {.is_push = true,
             .worker = worker,
             .incarnation = client.incarnation,
             .bucket = bucket,
             .sequence = client.step,
             .version = client.versions[static_cast<std::size_t>(bucket)],
             .wants_values = !reads_itself,
             .samples = 1 + below(4),
             .arrived = now_,
             .after = client.step,
             .gradient = std::vector<float>(static_cast<std::size_t>(workers_)),
             .values = std::vector<float>(static_cast<std::size_t>(reads_itself ? 0 : workers_))};
  request.gradient[static_cast<std::size_t>(worker)] = static_cast<float>(1 + below(999));
  model.worker(worker).accepted = client.step;
  if (!shard_->push({.id = {worker, client.incarnation, client.step},
                     .bucket = bucket,
                     .version = request.version,
                     .learning_rate = 1.0F,
                     .arrived = now_,
                     .samples = request.samples,
                     .gradient = as_f32(request.gradient),
                     .values = request.values,
                     .token = token})) {
    expect("a push was refused");
  }
  client.answers += reads_itself ? 0 : 1;
  if (++client.pushed == buckets_) {
    client.pushed = 0;
    ++client.step;
  }
  if (reads_itself) read(worker, bucket);
}

void ShardSchedule::push_again(int worker) {
  // The push that is sent again imitates a delayed message, of this or an earlier incarnation of
  // the worker.
  std::vector<std::size_t> sent;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].is_push && requests_[i].worker == worker) sent.push_back(i);
  }
  if (sent.empty()) return;
  const std::size_t back = static_cast<std::size_t>(below(4));
  const std::size_t original = sent[sent.size() - 1 - std::min(back, sent.size() - 1)];
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  const bool is_known = client.is_active && client.incarnation == requests_[original].incarnation;
  const std::size_t token = requests_.size();
  ModelRequest& request = requests_.emplace_back(requests_[original]);
  request.is_duplicate = true;
  request.is_consumed = false;
  request.is_closed = !is_known;
  request.wants_values = one_in(2);
  request.values.assign(static_cast<std::size_t>(request.wants_values ? workers_ : 0), 0.0F);
  if (shard_->push({.id = {worker, request.incarnation, request.sequence},
                    .bucket = request.bucket,
                    .version = request.version,
                    .learning_rate = 1.0F,
                    .gradient = as_f32(request.gradient),
                    .values = request.values,
                    .token = token}) != is_known) {
    expect("a push that was sent again was not judged by its incarnation");
  }
}

void ShardSchedule::read(int worker, int bucket) {
  Client& client = clients_[static_cast<std::size_t>(worker)];
  const std::size_t token = requests_.size();
  ModelRequest& request = requests_.emplace_back();
  request = {.worker = worker,
             .incarnation = client.incarnation,
             .bucket = bucket,
             .wants_values = true,
             .after = models_[static_cast<std::size_t>(bucket)].worker(worker).accepted,
             .gradient = {},
             .values = std::vector<float>(static_cast<std::size_t>(workers_))};
  if (!shard_->read({worker, client.incarnation, bucket, request.values, token})) {
    expect("a read was refused");
  }
  ++client.answers;
}

bool ShardSchedule::claim(int bucket) {
  const auto piece = shard_->claim(bucket, 1 + below(workers_));
  if (piece) pieces_[static_cast<std::size_t>(bucket)].push_back(*piece);
  return piece.has_value();
}

void ShardSchedule::update_one(int bucket) {
  std::vector<Piece>& pieces = pieces_[static_cast<std::size_t>(bucket)];
  if (pieces.empty()) return;
  const auto at = pieces.begin() + below(static_cast<int>(pieces.size()));
  const Piece piece = *at;
  pieces.erase(at);
  std::vector<ShardEvent> events;
  shard_->update(piece);
  shard_->take_events(events);
  on_event(bucket, events);
}

void ShardSchedule::end_task(int bucket) {
  while (!pieces_[static_cast<std::size_t>(bucket)].empty() && claim(bucket)) {
  }
  while (!pieces_[static_cast<std::size_t>(bucket)].empty()) update_one(bucket);
}

void ShardSchedule::drain(int bucket) {
  do {
    while (!pieces_[static_cast<std::size_t>(bucket)].empty()) update_one(bucket);
  } while (failure_.empty() && claim(bucket));
  if (failure_.empty()) check_idle(bucket);
}

void ShardSchedule::drain() {
  for (int b = 0; b < buckets_; ++b) drain(b);
}

using Kind = ShardEvent::Kind;

void ShardSchedule::on_event(int bucket, const std::vector<ShardEvent>& events) {
  if (events.empty()) return;
  samples_of_update_ = 0;
  for (const ShardEvent& event : events) {
    if (event.kind == Kind::kApplied) samples_of_update_ += requests_[event.token].samples;
  }
  for (const ShardEvent& event : events) on_event(event);
  const bool is_update = std::ranges::any_of(
      events, [](const ShardEvent& event) { return event.kind == Kind::kApplied; });
  if (!is_update) return;
  ++tally_.updates;
  if (is_plain_sync() &&
      models_[static_cast<std::size_t>(bucket)].last_update_pushes() != workers_) {
    expect("a synchronous update without all workers");
  }
}

void ShardSchedule::on_event(const ShardEvent& event) {
  ModelBucket& model = models_[static_cast<std::size_t>(event.bucket)];
  if (event.kind == Kind::kSnapshotCopied) {
    if (phase_ != Phase::kCopying || event.token != snapshots_begun_) return;  // withdrawn snapshot
    ++tally_.snapshots;
    expect(model.check_snapshot(clocks_, *target_, event.bucket));
    if (--not_copied_ == 0) phase_ = Phase::kNone;
    return;
  }
  ModelRequest& request = requests_[event.token];
  Client& client = clients_[static_cast<std::size_t>(request.worker)];
  const bool is_current = client.is_active && client.incarnation == request.incarnation;
  if (request.is_closed) return expect("an event after the last one of its request");
  if (event.worker != request.worker || event.bucket != request.bucket ||
      event.sequence != request.sequence) {
    return expect("an event of another request");
  }
  switch (event.kind) {
    case Kind::kApplied:
      expect(model.apply(request, event, samples_of_update_));
      request.is_closed = !request.wants_values;
      break;
    case Kind::kDropped:
      if (!request.is_duplicate) ++tally_.late;
      if (event.is_duplicate != request.is_duplicate)
        expect("a late push reported as a duplicate, or the reverse");
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
    case Kind::kCancelled:
      // The worker of the request may have left and joined again since.
      if (is_current && !request.is_consumed && request.is_push) expect("a push was forgotten");
      request.is_closed = true;
      break;
    case Kind::kSnapshotCopied:
      break;
  }
}

// Checks that, when no work is due, no request waits that the rule would answer.
void ShardSchedule::check_idle(int bucket) {
  ModelBucket& model = models_[static_cast<std::size_t>(bucket)];
  if (!std::ranges::equal(shard_->view(bucket).values, model.values())) {
    expect("the values are not the sum of what was applied");
  }
  const bool may_wait = options_.consistency == Consistency::kSync ||
                        (options_.consistency == Consistency::kQuorum && waits_for_others(bucket));
  for (const ModelRequest& request : requests_) {
    if (request.is_closed || request.bucket != bucket) continue;
    const Client& client = clients_[static_cast<std::size_t>(request.worker)];
    if (request.is_push && !request.is_consumed) {
      if (request.is_duplicate) expect("a duplicate waits");
      if (!may_wait && phase_ == Phase::kNone) expect("a push waits without a reason");
    } else if (!client.is_active || client.incarnation != request.incarnation) {
      expect("a worker that has left is still to be answered");
    } else if (model.may_read(request)) {
      expect("a request waits for values that its worker may read");
    } else {
      ++tally_.answers_that_waited;
    }
  }
}

// Returns whether the pushes that wait under kQuorum are too few, or may still be in their grace.
bool ShardSchedule::waits_for_others(int bucket) {
  ModelBucket& model = models_[static_cast<std::size_t>(bucket)];
  std::vector<ShardTime> arrived(static_cast<std::size_t>(workers_), ShardTime::max());
  for (const ModelRequest& request : requests_) {
    if (!request.is_push || request.is_duplicate || request.is_consumed || request.is_closed ||
        request.bucket != bucket) {
      continue;
    }
    const Client& client = clients_[static_cast<std::size_t>(request.worker)];
    if (!client.is_active || client.incarnation != request.incarnation) continue;
    ShardTime& first = arrived[static_cast<std::size_t>(request.worker)];
    first = std::min(first, request.arrived);
  }
  std::size_t awaited = 0;
  for (int worker = 0; worker < workers_; ++worker) {
    awaited += model.worker(worker).is_awaited() ? 1 : 0;
  }
  if (bucket > 0) return true;  // it follows the first bucket
  std::ranges::sort(arrived);
  std::erase(arrived, ShardTime::max());
  if (arrived.size() >= awaited) return false;
  if (options_.quorum == 0 || std::cmp_less(arrived.size(), options_.quorum)) return true;
  // The shard knows the time of its last push or advance_to(), which may be earlier.
  const auto deadline = shard_->next_deadline();
  const auto quorum = static_cast<std::size_t>(options_.quorum);
  return deadline &&
         arrived[quorum - 1] + ShardTime(std::llround(1e9 * options_.grace)) >= *deadline;
}

bool ShardSchedule::can_continue(int worker) {
  const Client& client = clients_[static_cast<std::size_t>(worker)];
  if (!can_push(client)) return false;
  if (client.pushed > 0) return true;
  if (phase_ != Phase::kCopying) return true;
  const auto entry = clocks_.find(worker);
  return entry != clocks_.end() && entry->second.incarnation == client.incarnation &&
         std::ranges::any_of(models_, [&](ModelBucket& model) {
           return model.worker(worker).done < entry->second.sequence;
         });
}

// Ends the schedule: all workers continue until every request that waits now has been answered.
void ShardSchedule::finish() {
  if (phase_ == Phase::kFrozen) begin_snapshot();
  drain();
  const auto asked = static_cast<std::ptrdiff_t>(requests_.size());
  for (int round = 0; round < kMostRounds && failure_.empty(); ++round) {
    const bool all_answered =
        std::all_of(requests_.begin(), requests_.begin() + asked,
                    [](const ModelRequest& request) { return request.is_closed; });
    if (all_answered && phase_ == Phase::kNone) return;
    for (int worker = 0; worker < workers_; ++worker) {
      if (can_continue(worker)) push(worker);
    }
    now_ += std::chrono::seconds(1);
    shard_->advance_to(now_);
    drain();
  }
  expect(phase_ == Phase::kNone ? "a request is never answered" : "a snapshot is never made");
}

}  // namespace syncopate::ps
