#include "tests/ps/coordinator/schedule_rule.h"

#include <algorithm>

namespace syncopate::ps {

void ScheduledRule::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  Member& member = members_[worker];
  if (incarnation < member.incarnation || takes_part(worker, incarnation)) return;
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [other, its] : members_) {
    if (its.is_active && other != worker) slowest = std::min(slowest, its.clock());
  }
  const bool is_new = incarnation != member.incarnation;
  if (is_new) member = {.incarnation = incarnation};
  if (is_limited_ && (is_new || !member.has_joined)) {
    member.limit = 0;
    member.is_held_back = true;
  }
  member.has_joined = true;
  member.accepted = member.begun = std::max(member.begun, sequence);
  const bool is_alone = slowest == std::numeric_limits<std::int64_t>::max();
  member.offset = is_alone ? 0 : slowest - static_cast<std::int64_t>(member.begun);
  member.is_active = true;
  member.is_resting = false;
}

void ScheduledRule::leave(WorkerId worker, std::uint32_t incarnation) {
  const auto member = members_.find(worker);
  if (member == members_.end() || member->second.incarnation != incarnation) return;
  member->second.is_active = member->second.is_resting = false;
}

void ScheduledRule::rest(WorkerId worker, std::uint32_t incarnation) {
  if (!takes_part(worker, incarnation)) return;
  members_[worker].is_active = false;
  members_[worker].is_resting = true;
}

bool ScheduledRule::is_resting(WorkerId worker, std::uint32_t incarnation) const {
  const auto member = members_.find(worker);
  return member != members_.end() && member->second.is_resting &&
         member->second.incarnation == incarnation;
}

bool ScheduledRule::takes_part(WorkerId worker, std::uint32_t incarnation) const {
  const auto member = members_.find(worker);
  return member != members_.end() && member->second.is_active &&
         member->second.incarnation == incarnation;
}

bool ScheduledRule::accept(const PushId& id) {
  Member& member = members_[id.worker];
  if (id.sequence <= member.accepted) return false;
  member.accepted = id.sequence;
  return true;
}

void ScheduledRule::advance(const PushId& id) {
  Member& member = members_[id.worker];
  if (member.incarnation == id.incarnation) member.begun = std::max(member.begun, id.sequence);
}

bool ScheduledRule::may_read(WorkerId worker, std::uint64_t sequence) const {
  const Member& reader = members_.at(worker);
  if (reader.begun < sequence) return false;
  if (options_.consistency != Consistency::kSsp) return true;
  return std::all_of(members_.begin(), members_.end(), [&](const auto& other) {
    return !other.second.is_active ||
           other.second.clock() >= reader.clock() - options_.max_staleness;
  });
}

bool ScheduledRule::snapshot_lets_begin(const PushId& id) const {
  return !is_limited_ || id.sequence <= members_.at(id.worker).limit;
}

bool ScheduledRule::is_late(const TrainingPush& push, std::uint64_t version) const {
  if (options_.consistency == Consistency::kSync) return push.version != version;
  if (!has_number(options_.staleness_rule)) return false;
  if (push.version > version) return true;  // of values before a server was restarted
  const auto number = static_cast<std::uint64_t>(options_.rule_number);
  if (options_.staleness_rule == StalenessRule::kRingmaster) {
    return version - push.version >= number;
  }
  return (push.version - 1) / number != (version - 1) / number;
}

std::vector<std::size_t> ScheduledRule::choose(const std::vector<TrainingPush>& waiting,
                                               std::uint64_t version) const {
  std::vector<std::size_t> chosen;
  const bool merges = options_.consistency == Consistency::kQuorum;
  if (options_.consistency != Consistency::kSync && !merges) {
    for (std::size_t i = 0; i < waiting.size() && chosen.empty(); ++i) {
      if (snapshot_lets_begin(waiting[i].id)) chosen.push_back(i);
    }
    return chosen;
  }
  int active = 0;
  int able = 0;
  for (const auto& [worker, member] : members_) {
    if (!member.is_active) continue;
    ++active;
    // An update does not wait for a worker that a snapshot keeps from pushing, since the snapshot
    // waits for this update.
    if (!is_limited_ || member.begun < member.limit) ++able;
  }
  const int most = merges && options_.quorum > 0 ? options_.quorum : active;
  const int awaited = std::min(std::max(most - options_.backup_workers, 1), able);
  int here = 0;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (!merges && waiting[i].version != version) continue;
    if (!snapshot_lets_begin(waiting[i].id)) continue;
    if (takes_part(waiting[i].id.worker, waiting[i].id.incarnation)) {
      if (options_.backup_workers > 0 && here == awaited) continue;
      ++here;
    }
    chosen.push_back(i);
  }
  if (here < awaited) chosen.clear();
  return chosen;
}

void ScheduledRule::hold() {
  is_limited_ = true;
  for (auto& [worker, member] : members_) {
    member.limit = 0;
    member.is_held_back = false;
  }
}

void ScheduledRule::limit(const std::vector<WorkerClock>& entries) {
  for (const WorkerClock& entry : entries) {
    const auto member = members_.find(entry.worker);
    if (member == members_.end() || member->second.is_held_back) continue;
    if (member->second.incarnation == entry.incarnation) member->second.limit = entry.sequence;
  }
}

bool ScheduledRule::has_reached_limits(const std::vector<TrainingPush>& waiting) const {
  const auto is_due = [&](const TrainingPush& push) { return snapshot_lets_begin(push.id); };
  if (std::any_of(waiting.begin(), waiting.end(), is_due)) return false;
  return std::all_of(members_.begin(), members_.end(), [](const auto& member) {
    const Member& its = member.second;
    const bool is_there = its.is_active || its.is_resting;
    return !is_there || its.begun >= its.limit || its.accepted > its.limit;
  });
}

std::vector<WorkerClock> ScheduledRule::clocks() const {
  std::vector<WorkerClock> clocks;
  for (const auto& [worker, member] : members_) {
    clocks.push_back({worker, member.incarnation, member.begun});
  }
  return clocks;
}

std::vector<WorkerClock> ScheduledRule::joined_clocks() const {
  std::vector<WorkerClock> joined = clocks();
  std::erase_if(joined,
                [this](const WorkerClock& clock) { return !members_.at(clock.worker).has_joined; });
  return joined;
}

void ScheduledRule::restore(const std::vector<WorkerClock>& clocks) {
  for (const WorkerClock& clock : clocks) {
    members_[clock.worker] = {.incarnation = clock.incarnation,
                              .accepted = clock.sequence,
                              .begun = clock.sequence,
                              .restored = clock.sequence,
                              .has_joined = false};
  }
}

bool ScheduledRule::is_restored(const PushId& id) const {
  const Member& member = members_.at(id.worker);
  return id.incarnation == member.incarnation && id.sequence <= member.restored;
}

}  // namespace syncopate::ps
