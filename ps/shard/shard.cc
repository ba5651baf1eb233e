#include "ps/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/shard/shard_memory.h"
#include "ps/shard/shared_bucket.h"

namespace syncopate::ps {
namespace {

std::string describe_range(Bucket bucket) {
  return fmt::format("[{}, {})", bucket.begin, bucket.end);
}

std::string describe_push(const PushRequest& push) {
  return fmt::format("push of bucket {} by worker {}", push.bucket, push.id.worker);
}

void check_room(const AnswerMemory& values, std::int64_t elements, ValuesFormat format,
                const std::string& what) {
  if (!values.bf16.empty() && format != ValuesFormat::kBf16) {
    throw ShapeError(what + ": room for bf16 values, expected f32");
  }
  if (std::cmp_equal(values.size(), elements)) return;
  throw ShapeError(
      fmt::format("{}: room for {} values, expected {}", what, values.size(), elements));
}

}  // namespace

// A bucket of the shard: the place of its elements, and its state behind a lock.
struct Shard::Variable {
  Variable(BucketId id, Bucket bucket, ConsistencyRule rule, StalenessCounts& staleness,
           MergeLog* merges)
      : window{.range = bucket},
        shared(id, bucket.end - bucket.begin, std::move(rule), staleness, merges) {}

  std::int64_t elements() const noexcept { return window.elements(); }

  ShardMemory::Window window;
  mutable std::mutex mutex;
  // Guarded by `mutex`. Only the content of the task under way is read without it, by threads that
  // work on one of its pieces.
  SharedBucket shared;
};

Shard::Shard(ArenaLayout layout, std::vector<Bucket> buckets, std::unique_ptr<Optimizer> optimizer,
             const ConsistencyOptions& consistency, Tensor values, ValuesFormat format)
    : buckets_(std::move(buckets)),
      memory_(std::make_unique<ShardMemory>(std::move(layout), std::move(optimizer),
                                            std::move(values), format)),
      staleness_(std::make_unique<StalenessCounts>()),
      merges_(consistency.consistency == Consistency::kQuorum
                  ? std::make_unique<MergeLog>(buckets_.size())
                  : nullptr) {
  place_variables(consistency);
}

Shard::~Shard() = default;

const Optimizer& Shard::optimizer() const noexcept { return memory_->optimizer(); }
const Tensor& Shard::values() const noexcept { return memory_->values(); }
std::span<const Tensor> Shard::slots() const noexcept { return memory_->slots(); }

void Shard::place_variables(const ConsistencyOptions& consistency) {
  const std::int64_t total = memory_->layout().total();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket bucket = buckets_[b];
    if (bucket.begin < 0 || bucket.end <= bucket.begin || bucket.end > total) {
      throw ShapeError(fmt::format("shard: bucket {} is {}, expected elements of the arena {}", b,
                                   describe_range(bucket), describe_range({0, total})));
    }
    variables_.push_back(std::make_unique<Variable>(static_cast<BucketId>(b), bucket,
                                                    ConsistencyRule(consistency), *staleness_,
                                                    merges_.get()));
  }
  std::vector<std::size_t> in_arena_order(buckets_.size());
  std::iota(in_arena_order.begin(), in_arena_order.end(), std::size_t{0});
  std::ranges::sort(in_arena_order, {}, [&](std::size_t b) { return buckets_[b].begin; });
  std::int64_t position = 0;
  std::int64_t free_from = 0;
  for (const std::size_t b : in_arena_order) {
    const Bucket bucket = buckets_[b];
    if (bucket.begin < free_from) {
      throw ShapeError(
          fmt::format("shard: bucket {} is {}, expected elements that no other bucket has, from {}",
                      b, describe_range(bucket), free_from));
    }
    variables_[b]->window.position = position;
    position += bucket.end - bucket.begin;
    free_from = bucket.end;
  }
  if (!std::cmp_equal(values().f32().size(), position)) {
    throw ShapeError(fmt::format("shard: {} values, expected {}, the elements of its buckets",
                                 values().num_elements(), position));
  }
}

Shard::Variable& Shard::at(BucketId bucket) const {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= variables_.size()) {
    throw InternalError(
        fmt::format("shard: no bucket {}, expected one in [0, {})", bucket, variables_.size()));
  }
  return *variables_[static_cast<std::size_t>(bucket)];
}

void Shard::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                 std::span<const BucketId> ahead) {
  check(worker >= 0, "workers are numbered from 0");
  const std::lock_guard membership(membership_);
  const std::optional<std::int64_t> slowest = slowest_other(worker);
  std::optional<std::uint64_t> own;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    const std::uint64_t here = variable->shared.standing(worker, incarnation, sequence).sequence;
    own = std::min(own.value_or(here), here);
  }
  const std::int64_t offset =
      slowest ? *slowest - static_cast<std::int64_t>(own.value_or(sequence)) : 0;
  std::vector<std::uint64_t> sequences(variables_.size(), sequence);
  for (const BucketId bucket : ahead) {
    const auto b = static_cast<std::size_t>(bucket);
    if (b < sequences.size()) sequences[b] = sequence + 1;
  }
  for (std::size_t b = 0; b < variables_.size(); ++b) {
    const std::lock_guard lock(variables_[b]->mutex);
    variables_[b]->shared.join(worker, incarnation, sequences[b], offset);
  }
}

// A joining worker gets one clock for all buckets. If the clock were levelled per bucket, while
// some buckets are in the middle of a step, two workers could each be ahead of the other on one
// bucket, and would wait for each other.
std::optional<std::int64_t> Shard::slowest_other(WorkerId worker) const {
  std::optional<std::int64_t> slowest;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    const auto here = variable->shared.standing(worker, 0, 0).slowest;
    if (here) slowest = std::min(slowest.value_or(*here), *here);
  }
  return slowest;
}

std::uint64_t Shard::leave(WorkerId worker, std::uint32_t incarnation) {
  std::uint64_t last = 0;
  std::uint64_t last_kept = std::numeric_limits<std::uint64_t>::max();
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.leave(worker, incarnation, last_kept);
    last = std::max(last, variable->shared.accepted(worker));
    // The other buckets merge what the first one merges.
    if (merges_pushes() && variable == variables_.front()) {
      last_kept = variable->shared.accepted(worker);
    }
  }
  return last;
}

void Shard::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.rest(worker, incarnation, sequence);
  }
}

bool Shard::push(const PushRequest& request) {
  Variable& to = at(request.bucket);
  if (request.gradient.num_elements != to.elements()) {
    throw ShapeError(fmt::format("{}: a gradient of {} elements, expected {}",
                                 describe_push(request), request.gradient.num_elements,
                                 to.elements()));
  }
  if (!is_well_formed(request.gradient)) {
    throw ShapeError(fmt::format("{}: {} bytes, expected {} elements as their codec encodes them",
                                 describe_push(request), request.gradient.bytes.size(),
                                 to.elements()));
  }
  if (!request.values.empty()) {
    check_room(request.values, to.elements(), memory_->format(), describe_push(request));
  }
  {
    const std::lock_guard lock(to.mutex);
    if (!to.shared.ends_rest(request.id)) return to.shared.push(request);
  }
  const std::optional<std::int64_t> slowest = slowest_other(request.id.worker);
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.wake(request.id.worker, slowest);
  }
  const std::lock_guard lock(to.mutex);
  return to.shared.push(request);
}

bool Shard::read(const ReadRequest& request) {
  Variable& of = at(request.bucket);
  check_room(request.values, of.elements(), memory_->format(),
             fmt::format("read of bucket {} by worker {}", request.bucket, request.worker));
  const std::lock_guard lock(of.mutex);
  return of.shared.read(request);
}

std::optional<ShardTime> Shard::next_deadline() const {
  if (!merges_pushes() || variables_.empty()) return std::nullopt;
  const std::lock_guard lock(variables_.front()->mutex);
  return variables_.front()->shared.next_deadline();
}

void Shard::advance_to(ShardTime now) {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.advance_to(now);
  }
}

Shard::Reading Shard::view(BucketId bucket) const {
  const Variable& of = at(bucket);
  const std::lock_guard lock(of.mutex);
  return {values().f32().subspan(static_cast<std::size_t>(of.window.position),
                                 static_cast<std::size_t>(of.elements())),
          of.shared.version()};
}

std::optional<Piece> Shard::claim(BucketId bucket, std::int64_t most_elements) {
  check(most_elements >= 1, "a piece has elements");
  Variable& of = at(bucket);
  const std::lock_guard lock(of.mutex);
  const auto part = of.shared.claim(most_elements);
  if (!part) return std::nullopt;
  const std::int64_t begin = of.window.range.begin;
  return Piece{bucket, of.shared.task().id, {begin + part->begin, begin + part->end}};
}

bool Shard::update(const Piece& piece) {
  Variable& of = at(piece.bucket);
  const std::int64_t begin = of.window.range.begin;
  const SharedBucket::Part part{piece.range.begin - begin, piece.range.end - begin};
  const BucketTask* task = nullptr;
  {
    const std::lock_guard lock(of.mutex);
    if (!of.shared.is_under_way(piece.task, part)) {
      throw InternalError(
          fmt::format("update of elements {} of bucket {}, task {}: expected a piece that claim() "
                      "returned and that is not done",
                      describe_range(piece.range), piece.bucket, piece.task));
    }
    task = &of.shared.task();
  }
  memory_->run(*task, of.window, piece.range);
  // Events are appended while the bucket is locked: its next task may end on another thread.
  const std::lock_guard lock(of.mutex);
  std::vector<ShardEvent> events;
  of.shared.finish(part, events);
  if (events.empty()) return false;
  const std::lock_guard events_lock(events_mutex_);
  events_.insert(events_.end(), events.begin(), events.end());
  return true;
}

void Shard::take_events(std::vector<ShardEvent>& events) {
  const std::lock_guard lock(events_mutex_);
  events.insert(events.end(), events_.begin(), events_.end());
  events_.clear();
}

void Shard::work(BucketId bucket, std::vector<ShardEvent>& events) {
  while (const std::optional<Piece> piece = claim(bucket)) update(*piece);
  take_events(events);
}

std::vector<WorkerClock> Shard::freeze(std::uint64_t number) {
  check(number > 0, "snapshots are numbered from 1");
  const std::lock_guard membership(membership_);
  std::map<WorkerId, WorkerClock> furthest;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.hold(number);
    for (const WorkerClock& clock : variable->shared.joined_clocks()) {
      WorkerClock& most = furthest.try_emplace(clock.worker, clock).first->second;
      const bool is_further = clock.incarnation != most.incarnation
                                  ? clock.incarnation > most.incarnation
                                  : clock.sequence > most.sequence;
      if (is_further) most = clock;
    }
  }
  std::vector<WorkerClock> clocks;
  for (const auto& [worker, clock] : furthest) clocks.push_back(clock);
  // Pushes that have begun on another bucket of this shard belong to the snapshot: such pushes need
  // not wait for begin_snapshot().
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.limit(clocks);
  }
  return clocks;
}

void Shard::begin_snapshot(std::uint64_t number, std::span<const WorkerClock> clocks,
                           std::shared_ptr<ShardSnapshot> target) {
  memory_->check_tensors(*target, true);
  target->buckets.resize(variables_.size());
  const SnapshotOrder order{.number = number, .target = std::move(target)};
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.begin_snapshot(clocks, order);
  }
}

void Shard::thaw() {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.thaw();
  }
}

ShardSnapshot Shard::snapshot() const {
  ShardSnapshot snapshot = memory_->copy();
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    check(!variable->shared.is_at_work(), "snapshot() is called while no work is under way");
    snapshot.buckets.push_back({variable->shared.version(), variable->shared.clocks()});
  }
  return snapshot;
}

void Shard::restore(const ShardSnapshot& snapshot) {
  memory_->check_tensors(snapshot, false);
  if (snapshot.buckets.size() != variables_.size()) {
    throw ShapeError(fmt::format("shard's snapshot: {} buckets, expected {}",
                                 snapshot.buckets.size(), variables_.size()));
  }
  memory_->restore(snapshot);
  if (merges_ != nullptr) merges_->clear();
  for (std::size_t b = 0; b < variables_.size(); ++b) {
    const std::lock_guard lock(variables_[b]->mutex);
    variables_[b]->shared.restore(snapshot.buckets[b]);
  }
}

bool Shard::write(BucketId bucket, std::uint64_t version,
                  std::span<const std::span<const std::byte>> values_and_slots) {
  Variable& to = at(bucket);
  memory_->check_blocks(bucket, to.window, values_and_slots);
  // Holds the lock while it writes values, so that no update or copy of the bucket begins. No
  // worker trains yet, so none waits for the lock.
  const std::lock_guard lock(to.mutex);
  if (!to.shared.set_version(version)) return false;
  memory_->write(to.window, values_and_slots);
  return true;
}

Shard::ElementRange Shard::element_range(BucketId bucket) const {
  const Variable& of = at(bucket);
  return {of.window.position, of.elements()};
}

std::vector<StalenessHistogram> Shard::staleness() const { return staleness_->by_worker(); }
StalenessTotals Shard::total_staleness() const { return staleness_->totals(); }

}  // namespace syncopate::ps
