#include "ps/shard/consistency_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate::ps {
namespace {

// A set of workers, one bit for each.
class WorkerSet {
 public:
  void insert(WorkerId worker) {
    const auto at = static_cast<std::size_t>(worker);
    if (is_in_.size() <= at) is_in_.resize(at + 1);
    is_in_[at] = true;
  }
  bool contains(WorkerId worker) const {
    const auto at = static_cast<std::size_t>(worker);
    return at < is_in_.size() && is_in_[at];
  }

 private:
  std::vector<bool> is_in_;
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
  if (options.quorum < 0 || !(options.grace >= 0.0 && options.grace <= kMostGrace)) {
    throw UsageError(fmt::format(
        "consistency: a quorum of {} and {} s of grace, expected 0 or more, and at most "
        "{} s",
        options.quorum, options.grace, kMostGrace));
  }
  if ((options.quorum > 0 || options.grace > 0.0) && options.consistency != Consistency::kQuorum) {
    throw UsageError(fmt::format("consistency: a quorum of {} under {}, expected quorum",
                                 options.quorum, name(options.consistency)));
  }
  const bool merges = is_sync || options.consistency == Consistency::kQuorum;
  if (options.staleness_rule != StalenessRule::kNone && merges) {
    throw UsageError(
        fmt::format("consistency: a staleness rule under {}, where an update has the pushes of "
                    "several workers; leave it out, or choose ssp or async",
                    name(options.consistency)));
  }
  if (options.staleness_rule >= StalenessRule::kRingmaster &&
      options.consistency != Consistency::kAsync) {
    throw UsageError(fmt::format("--staleness-rule {} requires --consistency async",
                                 name(options.staleness_rule)));
  }
  if (options.rule_number < 1 || options.rule_number > kMostRuleNumber) {
    throw UsageError(fmt::format("--staleness-rule {}: the number {}, expected 1 to {}",
                                 name(options.staleness_rule), options.rule_number,
                                 kMostRuleNumber));
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

ConsistencyRule::ConsistencyRule(const ConsistencyOptions& options) : options_(options) {
  check_consistency(options);
  grace_ = ShardTime(std::llround(options.grace * 1e9));
}

std::size_t ConsistencyRule::position_of(WorkerId worker) const noexcept {
  // Workers are numbered from 0, so in most jobs worker w is at position w.
  const auto at = static_cast<std::size_t>(worker);
  if (at < members_.size() && members_[at].worker == worker) return at;
  return static_cast<std::size_t>(std::ranges::lower_bound(members_, worker, {}, &Member::worker) -
                                  members_.begin());
}

ConsistencyRule::Member* ConsistencyRule::find(WorkerId worker) noexcept {
  const std::size_t at = position_of(worker);
  return at == members_.size() || members_[at].worker != worker ? nullptr : &members_[at];
}

const ConsistencyRule::Member* ConsistencyRule::find(WorkerId worker) const noexcept {
  const std::size_t at = position_of(worker);
  return at == members_.size() || members_[at].worker != worker ? nullptr : &members_[at];
}

void ConsistencyRule::count(const Member& member) {
  if (!member.is_awaited()) return;
  ++awaited_;
  if (options_.consistency == Consistency::kSsp) ++awaited_by_clock_[member.clock()];
}

void ConsistencyRule::uncount(const Member& member) {
  if (!member.is_awaited()) return;
  --awaited_;
  if (options_.consistency != Consistency::kSsp) return;
  const auto clock = awaited_by_clock_.find(member.clock());
  if (--clock->second == 0) awaited_by_clock_.erase(clock);
}

void ConsistencyRule::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
                           std::int64_t offset) {
  const Member joined{.worker = worker,
                      .incarnation = incarnation,
                      .is_active = true,
                      .accepted = sequence,
                      .begun = sequence,
                      .offset = offset,
                      .is_held_back = is_limited_};
  Member* const member = find(worker);
  if (member == nullptr) {
    members_.insert(members_.begin() + static_cast<std::ptrdiff_t>(position_of(worker)), joined);
    return count(joined);
  }
  if (incarnation < member->incarnation ||
      (incarnation == member->incarnation && member->is_active)) {
    return;
  }
  uncount(*member);
  if (incarnation == member->incarnation) {
    if (member->is_restored) {
      // The worker may have continued while the shard was restored: it does not send pushes up to
      // `sequence` again.
      member->accepted = std::max(member->accepted, sequence);
      member->begun = std::max(member->begun, sequence);
      member->is_restored = false;
      member->is_held_back = is_limited_;
      member->limit = 0;
    }
    member->is_active = true;
    member->offset = offset;
    member->rests = false;
  } else {
    *member = joined;
  }
  count(*member);
}

ConsistencyRule::Standing ConsistencyRule::standing(WorkerId worker, std::uint32_t incarnation,
                                                    std::uint64_t sequence) const noexcept {
  Standing standing{.sequence = sequence};
  const Member* const own = find(worker);
  if (own != nullptr && own->incarnation == incarnation) {
    standing.sequence = own->is_restored ? std::max(own->begun, sequence) : own->begun;
  }
  // Clocks matter under kSsp only.
  auto least = awaited_by_clock_.begin();
  if (least == awaited_by_clock_.end()) return standing;
  const bool is_own_alone =
      own != nullptr && own->is_awaited() && least->second == 1 && least->first == own->clock();
  if (is_own_alone && ++least == awaited_by_clock_.end()) return standing;
  standing.slowest = least->first;
  return standing;
}

void ConsistencyRule::leave(WorkerId worker, std::uint32_t incarnation) {
  Member* member = find(worker);
  if (member == nullptr || member->incarnation != incarnation) return;
  uncount(*member);
  member->is_active = false;
}

void ConsistencyRule::rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  Member* member = find(worker);
  if (member == nullptr || member->incarnation != incarnation || !member->is_active) return;
  if (member->accepted > sequence) return;  // the worker has pushed more already
  uncount(*member);
  member->rests = true;
  member->rests_after = sequence;
  count(*member);
}

bool ConsistencyRule::ends_rest(const PushId& id) const noexcept {
  const Member* member = find(id.worker);
  return member != nullptr && member->incarnation == id.incarnation && member->rests &&
         id.sequence > member->rests_after;
}

void ConsistencyRule::wake(WorkerId worker, std::optional<std::int64_t> slowest) {
  Member* member = find(worker);
  if (member == nullptr || !member->rests) return;
  uncount(*member);
  member->rests = false;
  if (slowest) {
    const auto after = static_cast<std::int64_t>(member->rests_after);
    member->offset = std::max(member->offset, *slowest - after);
  }
  count(*member);
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

bool ConsistencyRule::is_restored(const PushId& id) const noexcept {
  const Member* const member = find(id.worker);
  return member != nullptr && member->incarnation == id.incarnation &&
         id.sequence <= member->restored;
}

std::uint64_t ConsistencyRule::accepted(WorkerId worker) const noexcept {
  const Member* member = find(worker);
  return member == nullptr ? 0 : member->accepted;
}

void ConsistencyRule::advance(const PushId& id) {
  Member* member = find(id.worker);
  if (member == nullptr || member->incarnation != id.incarnation) return;
  uncount(*member);
  member->begun = std::max(member->begun, id.sequence);
  count(*member);
}

bool ConsistencyRule::includes(WorkerId worker, std::uint64_t sequence) const noexcept {
  const Member* reader = find(worker);
  return reader != nullptr && reader->begun >= sequence;
}

std::optional<std::int64_t> ConsistencyRule::least_clock_for(WorkerId worker) const noexcept {
  const Member* reader = find(worker);
  if (reader == nullptr || options_.consistency != Consistency::kSsp) return std::nullopt;
  return reader->clock() - options_.max_staleness;
}

std::optional<std::int64_t> ConsistencyRule::slowest() const noexcept {
  if (awaited_by_clock_.empty()) return std::nullopt;
  return awaited_by_clock_.begin()->first;
}

bool ConsistencyRule::may_read(WorkerId worker, std::uint64_t sequence) const noexcept {
  if (!includes(worker, sequence)) return false;
  const auto least = least_clock_for(worker);
  const auto now = slowest();
  return !least || !now || *now >= *least;
}

bool ConsistencyRule::snapshot_lets_begin(const PushId& id) const noexcept {
  if (!is_limited_) return true;
  const Member* member = find(id.worker);
  return member != nullptr && id.sequence <= member->limit;
}

bool ConsistencyRule::is_late(const PushRequest& push, std::uint64_t version) const noexcept {
  if (options_.consistency == Consistency::kSync) return push.version != version;
  return is_too_stale(options_, push.version, version);
}

std::size_t ConsistencyRule::num_awaited(std::span<const PushRequest> waiting) const {
  if (awaited_ == 0) return 0;
  const auto backups = static_cast<std::size_t>(options_.backup_workers);
  const std::size_t needed = awaited_ > backups ? awaited_ - backups : 1;
  if (!is_limited_) return needed;
  // An update must not wait for a worker that a snapshot keeps from pushing: the snapshot waits for
  // the update.
  WorkerSet able_here;
  for (const PushRequest& push : waiting) {
    if (snapshot_lets_begin(push.id)) able_here.insert(push.id.worker);
  }
  const auto able = std::ranges::count_if(members_, [&](const Member& member) {
    return member.is_awaited() &&
           (member.accepted < member.limit || able_here.contains(member.worker));
  });
  return std::min(needed, static_cast<std::size_t>(able));
}

std::optional<ShardTime> ConsistencyRule::merge_time(std::span<const PushRequest> waiting) const {
  if (options_.consistency != Consistency::kQuorum || waiting.empty()) return std::nullopt;
  const std::size_t awaited = num_awaited(waiting);
  const auto quorum = static_cast<std::size_t>(options_.quorum);
  const std::size_t needed = quorum == 0 ? awaited : std::min(awaited, quorum);
  if (waiting.size() < needed) return std::nullopt;  // most pushes return here
  WorkerSet here;
  std::size_t workers = 0;
  std::optional<ShardTime> reached;
  bool is_any = false;
  for (const PushRequest& push : waiting) {
    if (!snapshot_lets_begin(push.id)) continue;
    is_any = true;
    if (!takes_part(push.id.worker, push.id.incarnation) || here.contains(push.id.worker)) continue;
    here.insert(push.id.worker);
    if (++workers == needed) reached = push.arrived;
  }
  if (is_any && workers >= awaited) return ShardTime::min();
  return reached ? std::optional(*reached + grace_) : std::nullopt;
}

void ConsistencyRule::choose(std::span<const PushRequest> waiting, std::uint64_t version,
                             ShardTime now, std::vector<std::size_t>& chosen) const {
  if (options_.consistency == Consistency::kQuorum) {
    const auto due = merge_time(waiting);
    if (!due || *due > now) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (snapshot_lets_begin(waiting[i].id)) chosen.push_back(i);
    }
    return;
  }
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
  for (Member& member : members_) {
    member.limit = 0;
    member.is_held_back = false;
  }
}

void ConsistencyRule::limit(std::span<const WorkerClock> clocks) noexcept {
  is_limited_ = true;
  for (Member& member : members_) member.limit = 0;
  for (const WorkerClock& entry : clocks) {
    Member* member = find(entry.worker);
    if (member != nullptr && member->incarnation == entry.incarnation && !member->is_held_back) {
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

std::vector<WorkerClock> ConsistencyRule::joined_clocks() const {
  std::vector<WorkerClock> clocks;
  for (const Member& member : members_) {
    if (member.is_restored) continue;
    clocks.push_back({member.worker, member.incarnation, member.begun});
  }
  return clocks;
}

void ConsistencyRule::restore(std::span<const WorkerClock> clocks) {
  members_.clear();
  awaited_ = 0;
  awaited_by_clock_.clear();
  for (const Member& member : members_) count(member);
  is_limited_ = false;
  for (const WorkerClock& entry : clocks) {
    members_.push_back({.worker = entry.worker,
                        .incarnation = entry.incarnation,
                        .accepted = entry.sequence,
                        .begun = entry.sequence,
                        .is_restored = true,
                        .restored = entry.sequence});
  }
  std::ranges::stable_sort(members_, {}, &Member::worker);
}

}  // namespace syncopate::ps
