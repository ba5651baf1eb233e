#include "ps/shard/shard.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/optim/update_range.h"
#include "ps/shard/shard_variable.h"

namespace syncopate::ps {
namespace {

std::string describe(Bucket bucket) {
  return "[" + std::to_string(bucket.begin) + ", " + std::to_string(bucket.end) + ")";
}

std::string describe(const PushRequest& push) {
  return "push of bucket " + std::to_string(push.bucket) + " by worker " +
         std::to_string(push.id.worker);
}

void check_values(std::span<const float> values, std::int64_t elements, const std::string& what) {
  if (std::cmp_equal(values.size(), elements)) return;
  throw ShapeError(what + ": room for " + std::to_string(values.size()) + " values, expected " +
                   std::to_string(elements));
}

}  // namespace

Shard::Shard(ArenaLayout layout, std::vector<Bucket> buckets, std::unique_ptr<Optimizer> optimizer,
             const ConsistencyOptions& consistency, Tensor values)
    : layout_(std::move(layout)),
      buckets_(std::move(buckets)),
      optimizer_(std::move(optimizer)),
      sums_(sum_kernels(detect_isa())),
      values_(std::move(values)) {
  check(optimizer_->slot_names().size() <= kMaxSlots, "no optimizer has more slots than that");
  place_variables(consistency);
  for (std::size_t i = 0; i < optimizer_->slot_names().size(); ++i) {
    slots_.push_back(make_host_tensor(values_.shape(), DType::kF32));
  }
}

Shard::~Shard() = default;

void Shard::place_variables(const ConsistencyOptions& consistency) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket bucket = buckets_[b];
    if (bucket.begin < 0 || bucket.end <= bucket.begin || bucket.end > layout_.total()) {
      throw ShapeError("shard: bucket " + std::to_string(b) + " is " + describe(bucket) +
                       ", expected elements of the arena " + describe(Bucket{0, layout_.total()}));
    }
    variables_.push_back(std::make_unique<Variable>(static_cast<BucketId>(b), bucket, consistency));
  }
  std::vector<std::size_t> in_arena_order(buckets_.size());
  std::iota(in_arena_order.begin(), in_arena_order.end(), std::size_t{0});
  std::ranges::sort(in_arena_order, {}, [&](std::size_t b) { return buckets_[b].begin; });
  std::int64_t position = 0;
  std::int64_t free_from = 0;
  for (const std::size_t b : in_arena_order) {
    const Bucket bucket = buckets_[b];
    if (bucket.begin < free_from) {
      throw ShapeError("shard: bucket " + std::to_string(b) + " is " + describe(bucket) +
                       ", expected elements that no other bucket has, from " +
                       std::to_string(free_from));
    }
    variables_[b]->position = position;
    position += bucket.end - bucket.begin;
    free_from = bucket.end;
  }
  if (values_.f32().size() != static_cast<std::size_t>(position)) {
    throw ShapeError("shard: " + std::to_string(values_.num_elements()) +
                     " values, expected as many as its buckets have: " + std::to_string(position));
  }
}

Shard::Variable& Shard::at(BucketId bucket) const {
  if (bucket < 0 || static_cast<std::size_t>(bucket) >= variables_.size()) {
    throw InternalError("shard: no bucket " + std::to_string(bucket) + ", expected one in [0, " +
                        std::to_string(variables_.size()) + ")");
  }
  return *variables_[static_cast<std::size_t>(bucket)];
}

void Shard::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                 std::span<const BucketId> ahead) {
  check(worker >= 0, "workers are counted from 0");
  const std::optional<std::int64_t> slowest = slowest_but(worker);
  std::optional<std::uint64_t> own;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    const std::uint64_t here = variable->shared.standing(worker, incarnation, sequence).sequence;
    own = std::min(own.value_or(here), here);
  }
  const std::int64_t offset =
      slowest ? *slowest - static_cast<std::int64_t>(own.value_or(sequence)) : 0;
  for (std::size_t b = 0; b < variables_.size(); ++b) {
    const bool is_ahead = std::ranges::find(ahead, static_cast<BucketId>(b)) != ahead.end();
    const std::lock_guard lock(variables_[b]->mutex);
    variables_[b]->shared.join(worker, incarnation, sequence + (is_ahead ? 1 : 0), offset);
  }
}

// One clock for all buckets. A worker that were level with the slowest on each of them, some of
// them in the middle of a step, could stand ahead of another one here and behind it there: then
// both would wait for each other.
std::optional<std::int64_t> Shard::slowest_but(WorkerId worker) const {
  std::optional<std::int64_t> slowest;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    const auto here = variable->shared.standing(worker, 0, 0).slowest;
    if (here) slowest = std::min(slowest.value_or(*here), *here);
  }
  return slowest;
}

void Shard::leave(WorkerId worker, std::uint32_t incarnation) {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.leave(worker, incarnation);
  }
}

void Shard::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.rest(worker, incarnation, sequence);
  }
}

void Shard::set_consistency(const ConsistencyOptions& consistency) {
  check_consistency(consistency);
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.set_consistency(consistency);
  }
}

bool Shard::push(const PushRequest& request) {
  Variable& to = at(request.bucket);
  if (request.gradient.num_elements != to.elements()) {
    throw ShapeError(describe(request) + ": a gradient of " +
                     std::to_string(request.gradient.num_elements) + " elements, expected " +
                     std::to_string(to.elements()));
  }
  if (!is_well_formed(request.gradient)) {
    throw ShapeError(describe(request) + ": " + std::to_string(request.gradient.bytes.size()) +
                     " bytes, expected " + std::to_string(to.elements()) +
                     " elements as their codec has them");
  }
  if (!request.values.empty()) check_values(request.values, to.elements(), describe(request));
  {
    const std::lock_guard lock(to.mutex);
    if (!to.shared.ends_rest(request.id)) return to.shared.push(request);
  }
  const std::optional<std::int64_t> slowest = slowest_but(request.id.worker);
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    variable->shared.wake(request.id.worker, slowest);
  }
  const std::lock_guard lock(to.mutex);
  return to.shared.push(request);
}

bool Shard::read(const ReadRequest& request) {
  Variable& of = at(request.bucket);
  check_values(request.values, of.elements(),
               "read of bucket " + std::to_string(request.bucket) + " by worker " +
                   std::to_string(request.worker));
  const std::lock_guard lock(of.mutex);
  return of.shared.read(request);
}

Shard::Reading Shard::view(BucketId bucket) const {
  const Variable& of = at(bucket);
  const std::lock_guard lock(of.mutex);
  return {values_.f32().subspan(static_cast<std::size_t>(of.position),
                                static_cast<std::size_t>(of.elements())),
          of.shared.version()};
}

std::vector<StalenessHistogram> Shard::staleness() const {
  std::map<WorkerId, StalenessHistogram> merged;
  for (const auto& variable : variables_) {
    const std::lock_guard lock(variable->mutex);
    for (const auto& [worker, histogram] : variable->shared.staleness()) {
      merged[worker].merge(histogram);
    }
  }
  std::vector<StalenessHistogram> by_worker;
  for (const auto& [worker, histogram] : merged) {
    by_worker.resize(static_cast<std::size_t>(worker) + 1);
    by_worker.back() = histogram;
  }
  return by_worker;
}

}  // namespace syncopate::ps
