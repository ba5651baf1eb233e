#include "strategies/local_updates/local_variables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "models/optim/outer_rule.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

// Adds a block to a hash. Four chains of multiplications, so that a hash costs less than reading
// the block from memory.
std::uint64_t add_to_hash(std::uint64_t hash, std::span<const float> values) {
  constexpr std::uint64_t kPrime = 0x100000001B3;
  constexpr std::size_t kWord = sizeof(std::uint64_t) / sizeof(float);
  std::array<std::uint64_t, 4> chains{hash, hash + 1, hash + 2, hash + 3};
  const std::size_t words = values.size() / kWord;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, &values[i * kWord], sizeof(word));
    std::uint64_t& chain = chains[i % chains.size()];
    chain = std::rotl((chain ^ word) * kPrime, 29);
  }
  for (std::size_t i = words * kWord; i < values.size(); ++i) {
    chains[0] = (chains[0] ^ std::bit_cast<std::uint32_t>(values[i])) * kPrime;
  }
  for (const std::uint64_t chain : chains) hash = std::rotl((hash ^ chain) * kPrime, 29);
  return hash;
}

}  // namespace

LocalVariables::LocalVariables(Replica& replica, const StrategyOptions& options,
                               const AbortReason& aborted,
                               std::function<void(Replica&)> average_statistics)
    : replica_(replica),
      update_(replica, options),
      sync_every_(options.local.sync_every),
      inner_state_(options.local.inner_state),
      outer_options_(outer_options(options.local)),
      outer_(make_outer_rule(outer_options_), replica.arena->layout().total()),
      needs_displacements_(needs_displacements(outer_options_, replica.collective->size())),
      aborted_(aborted),
      average_statistics_(std::move(average_statistics)) {
  if (needs_displacements_) {
    start_ = make_host_tensor({replica.arena->layout().total()}, DType::kF32);
  }
}

void LocalVariables::pull(const UpdateStep& update) {
  aborted_.throw_if_set();
  now_ = update;
  UpdateStep inner = update;
  // Fresh slots need a fresh count: with zeros, Adam's bias correction of a late step would be too
  // weak.
  if (inner_state_ == InnerState::kReset) inner.step = round_.steps + 1;
  update_.begin(inner);
  if (round_.steps > 0 || !needs_displacements_) return;
  std::ranges::copy(replica_.arena->values().f32(), start_.f32().begin());
}

StepReport LocalVariables::commit() {
  update_.clip_and_update_all();
  add_step(round_, report_);
  if (round_.steps == sync_every_ || now_.is_last) return end_round();
  StepReport own = report_;
  own.round_steps = 0;
  return own;
}

CommunicationTimes LocalVariables::times() const {
  CommunicationTimes times = replica_.collective->times();
  times.exposed_seconds += gather_seconds_;
  times.under_way_seconds += gather_seconds_;
  times.peers_wait_seconds = gather_seconds_;
  return times;
}

std::optional<float> LocalVariables::outer_rate() const {
  if (!outer_options_.scale_by_rate || outer_options_.momentum == 0.0) return std::nullopt;
  return rate_of_last_round_;
}

StepReport LocalVariables::end_round() {
  RoundReport own = std::exchange(round_, {});
  own.hash = hash_;
  ++rounds_;
  const std::vector<RoundReport> all = gather(own);
  StepReport total = sum_of(all);
  const float weight = weight_of(all, static_cast<std::size_t>(replica_.collective->rank()));
  if (!needs_displacements_) {
    end_inner_state(weight);
    return total;
  }
  const Tensor& values = replica_.arena->values();
  if (std::isfinite(total.scores.loss)) {
    sum_displacements(weight);
    if (!all_finite(replica_.arena->gradients())) {
      total.scores.loss = std::numeric_limits<double>::quiet_NaN();
    }
  }
  std::ranges::copy(start_.f32(), values.f32().begin());
  if (std::isfinite(total.scores.loss)) {
    make_outer_step();
    end_inner_state(weight);
  }
  replica_.arena->bump_all_versions();
  return total;
}

std::vector<RoundReport> LocalVariables::gather(const RoundReport& own) {
  Collective& collective = *replica_.collective;
  std::vector<RoundReport> all(static_cast<std::size_t>(collective.size()));
  const Span span(replica_.trace, TraceKind::kCommunication);
  const auto begun = Clock::now();
  collective.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  gather_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
  require_equal_hashes(all);
  return all;
}

void LocalVariables::sum_displacements(float weight) {
  const Span span(replica_.trace, TraceKind::kCommunication);
  Collective& collective = *replica_.collective;
  const ParameterArena& arena = *replica_.arena;
  std::vector<WorkId> sums;
  for (const Bucket& bucket : arena.buckets()) {
    const Tensor part = arena.gradients().rows(bucket.begin, bucket.end);
    const auto begin = static_cast<std::size_t>(bucket.begin);
    const auto size = static_cast<std::size_t>(bucket.end - bucket.begin);
    displacement(part.f32(), start_.f32().subspan(begin, size),
                 arena.values().f32().subspan(begin, size), weight);
    sums.push_back(collective.all_reduce(part, bucket.begin));
  }
  for (const WorkId sum : sums) collective.wait(sum);
}

void LocalVariables::make_outer_step() {
  {
    const Span span(replica_.trace, TraceKind::kUpdate);
    replica_.backend->update(
        outer_.optimizer(),
        outer_step(outer_options_, rounds_, now_.learning_rate, rate_of_last_round_),
        *replica_.arena, outer_.tensors(), {0, replica_.arena->layout().total()});
  }
  rate_of_last_round_ = now_.learning_rate;
  average_statistics_(replica_);
  hash_ = hash();
  // The hash of a round is compared at the end of the next one, and this is the last.
  if (now_.is_last) (void)gather({.hash = hash_});
}

void LocalVariables::end_inner_state(float weight) {
  for (const Snapshot::Slot& slot : inner_slots()) {
    if (inner_state_ == InnerState::kReset) std::ranges::fill(slot.values.f32(), 0.0F);
    if (inner_state_ != InnerState::kAverage || replica_.collective->size() == 1) continue;
    for (float& value : slot.values.f32()) value *= weight;
    const Span span(replica_.trace, TraceKind::kCommunication);
    replica_.collective->wait(replica_.collective->all_reduce(slot.values, 0));
  }
}

std::uint64_t LocalVariables::hash() const {
  std::uint64_t hash = add_to_hash(1, replica_.arena->values().f32());
  for (const Tensor& slot : outer_.tensors()) hash = add_to_hash(hash, slot.f32());
  return add_to_hash(hash, replica_.state->values.f32());
}

}  // namespace syncopate
