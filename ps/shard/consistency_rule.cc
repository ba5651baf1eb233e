#include "ps/shard/consistency_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

// A set of workers as a sorted vector: the set is small, and needs no allocation per worker.
class WorkerSet {
 public:
  void insert(WorkerId worker) {
    const auto at = std::ranges::lower_bound(workers_, worker);
    if (at == workers_.end() || *at != worker) workers_.insert(at, worker);
  }
  bool contains(WorkerId worker) const { return std::ranges::binary_search(workers_, worker); }

 private:
  std::vector<WorkerId> workers_;
};

}  // namespace

void check_consistency(const ConsistencyOptions& options) {
  const bool is_sync = options.consistency == Consistency::kSync;
  if (options.max_staleness < 0) {
    throw UsageError(fmt::format("consistency: a maximum staleness of {} steps, expected 0 or more",
                                 options.max_staleness));
  }
  if (options.backup_workers < 0) {
    throw UsageError(
        fmt::format("consistency: {} backup workers, expected 0 or more", options.backup_workers));
  }
  if (options.backup_workers > 0 && !is_sync) {
    throw UsageError(fmt::format(
        "consistency: {} backup workers under a rule that does not wait for all workers; expected "
        "0, or sync",
        options.backup_workers));
  }
  if (options.staleness_rule != StalenessRule::kNone && is_sync) {
    throw UsageError(
        "consistency: a staleness rule under sync, where no gradient is stale; leave it out, or "
        "choose ssp or async");
  }
  if (!(options.compensation >= 0.0F) || !std::isfinite(options.compensation)) {
    throw UsageError(fmt::format("consistency: a delay compensation of {}, expected 0 or more",
                                 options.compensation));
  }
  if (!(options.mean_square_decay >= 0.0F && options.mean_square_decay < 1.0F)) {
    throw UsageError(fmt::format("consistency: a mean square decay of {}, expected one in [0, 1)",
                                 options.mean_square_decay));
  }
}

ConsistencyRule::ConsistencyRule(const ConsistencyOptions& options) { set_options(options); }

void ConsistencyRule::set_options(const ConsistencyOptions& options) {
  check_consistency(options);
  options_ = options;
}

ConsistencyRule::Member* ConsistencyRule::find(WorkerId worker) noexcept {
  const auto at = std::ranges::lower_bound(members_, worker, {}, &Member::worker);
  return at == members_.end() || at->worker != worker ? nullptr : &*at;
}

const ConsistencyRule::Member* ConsistencyRule::find(WorkerId worker) const noexcept {
  const auto at = std::ranges::lower_bound(members_, worker, {}, &Member::worker);
  return at == members_.end() || at->worker != worker ? nullptr : &*at;
}

void ConsistencyRule::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                           std::int64_t offset) {
  Member* member = find(worker);
  if (member == nullptr) {
    const auto at = std::ranges::lower_bound(members_, worker, {}, &Member::worker);
    member = &*members_.emplace(at);
  } else if (incarnation < member->incarnation ||
             (incarnation == member->incarnation && member->is_active)) {
    return;
  } else if (incarnation == member->incarnation) {
    if (member->is_restored) {
      // The worker may have continued while the shard was restored: it does not send pushes up to
      // `sequence` again.
      member->accepted = std::max(member->accepted, sequence);
      member->begun = std::max(member->begun, sequence);
      member->is_restored = false;
    }
    member->is_active = true;
    member->offset = offset;
    member->rests = false;
    return;
  }
  *member = {.worker = worker,
             .incarnation = incarnation,
             .is_active = true,
             .accepted = sequence,
             .begun = sequence,
             .offset = offset};
}

ConsistencyRule::Standing ConsistencyRule::standing(WorkerId worker, std::uint32_t incarnation,
                                                    std::uint64_t sequence) const noexcept {
  Standing standing{.sequence = sequence};
  for (const Member& member : members_) {
    if (member.worker == worker) {
      if (member.incarnation == incarnation) {
        standing.sequence = member.is_restored ? std::max(member.begun, sequence) : member.begun;
      }
    } else if (member.is_awaited()) {
      standing.slowest = std::min(standing.slowest.value_or(member.clock()), member.clock());
    }
  }
  return standing;
}

void ConsistencyRule::leave(WorkerId worker, std::uint32_t incarnation) {
  Member* member = find(worker);
  if (member != nullptr && member->incarnation == incarnation) member->is_active = false;
}

void ConsistencyRule::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  Member* member = find(worker);
  if (member == nullptr || member->incarnation != incarnation || !member->is_active) return;
  if (member->accepted > sequence) return;  // the worker has pushed more already
  member->rests = true;
  member->rests_after = sequence;
}

bool ConsistencyRule::ends_rest(const PushId& id) const noexcept {
  const Member* member = find(id.worker);
  return member != nullptr && member->incarnation == id.incarnation && member->rests &&
         id.sequence > member->rests_after;
}

void ConsistencyRule::wake(WorkerId worker, std::optional<std::int64_t> slowest) noexcept {
  Member* member = find(worker);
  if (member == nullptr || !member->rests) return;
  member->rests = false;
  if (!slowest) return;
  const auto after = static_cast<std::int64_t>(member->rests_after);
  member->offset = std::max(member->offset, *slowest - after);
}

bool ConsistencyRule::takes_part(WorkerId worker, std::uint32_t incarnation) const noexcept {
  const Member* member = find(worker);
  return member != nullptr && member->is_active && member->incarnation == incarnation;
}

bool ConsistencyRule::accept(const PushId& id) {
  Member* member = find(id.worker);
  check(member != nullptr, "only pushes of active workers are accepted");
  if (id.sequence <= member->accepted) return false;
  member->accepted = id.sequence;
  return true;
}

std::uint64_t ConsistencyRule::accepted(WorkerId worker) const noexcept {
  const Member* member = find(worker);
  return member == nullptr ? 0 : member->accepted;
}

void ConsistencyRule::advance(const PushId& id) noexcept {
  Member* member = find(id.worker);
  if (member == nullptr || member->incarnation != id.incarnation) return;
  member->begun = std::max(member->begun, id.sequence);
}

bool ConsistencyRule::may_read(WorkerId worker, std::uint64_t sequence) const noexcept {
  const Member* reader = find(worker);
  if (reader == nullptr || reader->begun < sequence) return false;
  if (options_.consistency != Consistency::kSsp) return true;
  return std::ranges::all_of(members_, [&](const Member& other) {
    return !other.is_awaited() || other.clock() >= reader->clock() - options_.max_staleness;
  });
}

bool ConsistencyRule::snapshot_lets_begin(const PushId& id) const noexcept {
  if (!is_limited_) return true;
  const Member* member = find(id.worker);
  return member != nullptr && id.sequence <= member->limit;
}

bool ConsistencyRule::is_late(const PushRequest& push, std::uint64_t version) const noexcept {
  return options_.consistency == Consistency::kSync && push.version != version;
}

std::size_t ConsistencyRule::num_awaited(std::span<const PushRequest> waiting) const {
  // An update must not wait for a worker that a snapshot keeps from pushing: the snapshot waits for
  // the update.
  WorkerSet able_here;
  if (is_limited_) {
    for (const PushRequest& push : waiting) {
      if (snapshot_lets_begin(push.id)) able_here.insert(push.id.worker);
    }
  }
  std::size_t active = 0;
  std::size_t able = 0;
  for (const Member& member : members_) {
    if (!member.is_awaited()) continue;
    ++active;
    if (!is_limited_ || member.accepted < member.limit || able_here.contains(member.worker)) ++able;
  }
  if (active == 0) return 0;
  const auto backups = static_cast<std::size_t>(options_.backup_workers);
  return std::min(active > backups ? active - backups : 1, able);
}

void ConsistencyRule::choose(std::span<const PushRequest> waiting, std::uint64_t version,
                             std::vector<std::size_t>& chosen) const {
  if (options_.consistency != Consistency::kSync) {
    const auto first = std::ranges::find_if(
        waiting, [&](const PushRequest& push) { return snapshot_lets_begin(push.id); });
    if (first != waiting.end()) {
      chosen.push_back(static_cast<std::size_t>(first - waiting.begin()));
    }
    return;
  }
  const std::size_t awaited = num_awaited(waiting);
  // While fewer pushes wait than an update needs, no update is due. Most pushes return here.
  if (waiting.size() < awaited) return;
  WorkerSet taken;
  std::size_t here = 0;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const PushRequest& push = waiting[i];
    if (push.version != version || !snapshot_lets_begin(push.id)) continue;
    // A second push of one worker for this version is late once its first push is applied.
    if (taken.contains(push.id.worker)) continue;
    if (takes_part(push.id.worker, push.id.incarnation)) {
      if (options_.backup_workers > 0 && here == awaited) continue;
      ++here;
    }
    taken.insert(push.id.worker);
    chosen.push_back(i);
  }
  if (here < awaited) chosen.clear();
}

void ConsistencyRule::hold() noexcept {
  is_limited_ = true;
  for (Member& member : members_) member.limit = 0;
}

void ConsistencyRule::limit(std::span<const WorkerClock> clocks) noexcept {
  hold();
  for (const WorkerClock& entry : clocks) {
    Member* member = find(entry.worker);
    if (member != nullptr && member->incarnation == entry.incarnation) {
      member->limit = entry.sequence;
    }
  }
}

bool ConsistencyRule::has_reached_limits() const noexcept {
  return std::ranges::all_of(members_, [](const Member& member) {
    // Sequences of pushes ascend: once a later push has arrived, a missing one will not come.
    return !member.is_active || member.begun >= member.limit || member.accepted > member.limit;
  });
}

std::vector<WorkerClock> ConsistencyRule::clocks() const {
  std::vector<WorkerClock> clocks;
  clocks.reserve(members_.size());
  for (const Member& member : members_) {
    clocks.push_back({member.worker, member.incarnation, member.begun});
  }
  return clocks;
}

void ConsistencyRule::restore(std::span<const WorkerClock> clocks) {
  members_.clear();
  is_limited_ = false;
  for (const WorkerClock& entry : clocks) {
    members_.push_back({.worker = entry.worker,
                        .incarnation = entry.incarnation,
                        .accepted = entry.sequence,
                        .begun = entry.sequence,
                        .is_restored = true});
  }
  std::ranges::stable_sort(members_, {}, &Member::worker);
}

}  // namespace syncopate::ps
