#include "strategies/local_updates/local_variables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
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
                               const AbortReason& aborted, std::unique_ptr<Collective> group,
                               std::function<void(Replica&)> average_statistics)
    : replica_(replica),
      update_(replica, options),
      sums_(replica, update_),
      options_(options.local),
      outer_options_(outer_options(options.local)),
      outer_(make_outer_rule(outer_options_), replica.arena->layout().total()),
      needs_displacements_(needs_displacements(outer_options_, replica.collective->size())),
      aborted_(aborted),
      group_(std::move(group)),
      average_statistics_(std::move(average_statistics)) {
  if (needs_displacements_) {
    start_ = make_host_tensor({replica.arena->layout().total()}, DType::kF32);
  }
}

void LocalVariables::pull(const UpdateStep& update) {
  aborted_.throw_if_set();
  now_ = update;
  sums_now_ = syncopate::sums_gradients(options_, update.epochs);
  if (sums_now_) return update_.begin(update);
  UpdateStep inner = update;
  // Fresh slots need a fresh count: with zeros, Adam's bias correction of a late step would be too
  // weak.
  if (options_.inner_state == InnerState::kReset) {
    inner.step = round_.steps + 1;
    if (rounds_ == 0 && round_.steps == 0) reset_inner_state();  // after sums of gradients
  }
  update_.begin(inner);
  if (round_.steps > 0 || !needs_displacements_) return;
  std::ranges::copy(replica_.arena->values().f32(), start_.f32().begin());
}

void LocalVariables::push(BucketId bucket, const StepReport& report) {
  if (sums_now_) return sums_.push(bucket, report);
  report_ = report;
}

StepReport LocalVariables::commit() {
  if (sums_now_) return sums_.commit();
  update_.clip_and_update_all();
  add_step(round_, report_);
  if (round_.steps == options_.sync_every || now_.is_last || now_.ends_round) {
    return end_round();
  }
  if (group_ != nullptr) {
    group_samples_ += report_.scores.num_samples;
    if (round_.steps % (options_.sync_every / options_.sync_groups) == 0) average_group();
  }
  StepReport own = report_;
  own.round_steps = 0;
  return own;
}

CommunicationTimes LocalVariables::times() const {
  CommunicationTimes times = replica_.collective->times();
  times.exposed_seconds += gather_seconds_;
  times.under_way_seconds += gather_seconds_;
  times.peers_wait_seconds = gather_seconds_ + sums_.peers_wait_seconds();
  return times;
}

std::optional<float> LocalVariables::outer_rate() const {
  if (!outer_options_.scale_by_rate || outer_options_.momentum == 0.0) return std::nullopt;
  return rate_of_last_round_;
}

StepReport LocalVariables::end_round() {
  const Span exchange(replica_.trace, TraceKind::kExchange, rounds_ + 1);
  RoundReport own = std::exchange(round_, {});
  group_samples_ = 0;
  own.hash = hash_;
  own.learning_rate = now_.learning_rate;
  own.is_last = now_.is_last;
  ++rounds_;
  const std::vector<RoundReport> all = gather(own);
  steps_of_round_.clear();
  for (const RoundReport& report : all) steps_of_round_.push_back(report.steps);
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
    make_outer_step(all);
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

void LocalVariables::average_group() {
  const Span span(replica_.trace, TraceKind::kExchange, rounds_ + 1);
  const auto own = static_cast<double>(std::exchange(group_samples_, 0));
  std::vector<double> samples(static_cast<std::size_t>(group_->size()));
  group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(samples)));
  const double all = std::accumulate(samples.begin(), samples.end(), 0.0);
  if (all == 0.0) return;
  const Tensor& sum = replica_.arena->gradients();
  const std::span<float> values = replica_.arena->values().f32();
  displacement(sum.f32(), start_.f32(), values, static_cast<float>(own / all));
  group_->wait(group_->all_reduce(sum, 0));
  displacement(values, start_.f32(), sum.f32(), 1.0F);
  replica_.arena->bump_all_versions();
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

void LocalVariables::make_outer_step(std::span<const RoundReport> reports) {
  const float rate = last_learning_rate(reports);
  {
    const Span span(replica_.trace, TraceKind::kUpdate);
    replica_.backend->update(
        outer_.optimizer(), outer_step(outer_options_, rounds_, rate, rate_of_last_round_),
        *replica_.arena, outer_.tensors(), {0, replica_.arena->layout().total()});
  }
  rate_of_last_round_ = rate;
  average_statistics_(replica_);
  hash_ = hash();
  // The hash of a round is compared at the end of the next one, and this is the last.
  const bool is_last = std::ranges::any_of(reports, &RoundReport::is_last);
  if (is_last) (void)gather({.hash = hash_});
}

void LocalVariables::end_inner_state(float weight) {
  if (options_.inner_state == InnerState::kReset) reset_inner_state();
  if (options_.inner_state != InnerState::kAverage || replica_.collective->size() == 1) return;
  for (const Snapshot::Slot& slot : inner_slots()) {
    for (float& value : slot.values.f32()) value *= weight;
    const Span span(replica_.trace, TraceKind::kCommunication);
    replica_.collective->wait(replica_.collective->all_reduce(slot.values, 0));
  }
}

void LocalVariables::reset_inner_state() {
  for (const Snapshot::Slot& slot : inner_slots()) std::ranges::fill(slot.values.f32(), 0.0F);
}

std::uint64_t LocalVariables::hash() const {
  std::uint64_t hash = add_to_hash(1, replica_.arena->values().f32());
  for (const Tensor& slot : outer_.tensors()) hash = add_to_hash(hash, slot.f32());
  return add_to_hash(hash, replica_.state->values.f32());
}

}  // namespace syncopate
