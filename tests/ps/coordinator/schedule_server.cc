#include "tests/ps/coordinator/schedule_server.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ps/coordinator/coordinator.h"

namespace syncopate::ps {

void ScheduledServer::restart() {
  std::map<std::uint64_t, Copy> files = std::move(files_);
  std::vector<std::string> mistakes = std::move(mistakes_);
  rule_ = ScheduledRule(consistency_);
  incarnation_ = 0;
  is_declared_ = is_serving_ = false;
  waiting_.clear();
  unanswered_pushes_.clear();
  resting_.clear();
  applied_.clear();
  version_ = 1;
  frozen_.reset();
  snapshot_.reset();
  has_copied_ = false;
  copies_.clear();
  events_.clear();
  replies.clear();
  orders.clear();
  files_ = std::move(files);
  mistakes_ = std::move(mistakes);
  is_alive = true;
}

wire::HelloT ScheduledServer::make_hello() const {
  wire::HelloT hello;
  hello.role = 1;
  hello.index = index_;
  hello.incarnation = incarnation_;
  hello.server = std::make_unique<wire::ServerAddressT>();
  hello.server->endpoint = "h:" + std::to_string(index_);
  for (const auto& [snapshot, file] : files_) hello.snapshots.push_back(snapshot);
  return hello;
}

void ScheduledServer::on_message(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  switch (body.type) {
    case wire::Body::Welcome:
      incarnation_ = body.AsWelcome()->incarnation;
      return;
    case wire::Body::Declared: {
      // A new shard serves the initial values until the server is told to roll back.
      if (!is_declared_) is_serving_ = true;
      is_declared_ = true;
      wire::DeclaredT answer;
      answer.fingerprint = 5;
      replies.push_back(wire::make_message(std::move(answer)));
      return;
    }
    case wire::Body::WorkerLeft: {
      const wire::WorkerLeftT& left = *body.AsWorkerLeft();
      rule_.leave(left.worker, left.incarnation);
      resting_.erase(left.worker);
      std::erase_if(unanswered_pushes_, [&](const TrainingPush& push) {
        return push.id.worker == left.worker && push.id.incarnation == left.incarnation;
      });
      return work();
    }
    case wire::Body::Resting: {
      const wire::RestingT& rest = *body.AsResting();
      if (!rule_.takes_part(rest.worker, rest.incarnation) &&
          !rule_.is_resting(rest.worker, rest.incarnation)) {
        return;
      }
      resting_[rest.worker] = rest.sequence;
      return work();
    }
    case wire::Body::Freeze: {
      if (frozen_) mistakes_.emplace_back("a snapshot began while another was under way");
      frozen_ = body.AsFreeze()->snapshot;
      rule_.hold();
      wire::FrozenT frozen;
      frozen.snapshot = *frozen_;
      for (const WorkerClock& entry : rule_.joined_clocks()) {
        frozen.entries.emplace_back(entry.worker, entry.incarnation, entry.sequence);
      }
      replies.push_back(wire::make_message(std::move(frozen)));
      return;
    }
    case wire::Body::Snapshot: {
      if (!frozen_ || *frozen_ != body.AsSnapshot()->snapshot)
        mistakes_.emplace_back("a snapshot without freeze");
      snapshot_ = *body.AsSnapshot();
      std::vector<WorkerClock> entries;
      for (const wire::SnapshotEntry& entry : snapshot_->entries) {
        entries.push_back({entry.worker(), entry.incarnation(), entry.sequence()});
      }
      rule_.limit(entries);
      return work();
    }
    case wire::Body::Release:
      frozen_.reset();
      snapshot_.reset();
      has_copied_ = false;
      rule_.release();
      return work();
    case wire::Body::RollBack:
      return roll_back(*body.AsRollBack());
    case wire::Body::Finished:
      is_finished_ = true;
      return;
    default:
      return;
  }
}

void ScheduledServer::join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence) {
  rule_.join(worker, incarnation, sequence);
  resting_.erase(worker);
  const auto is_older = [&](const PushId& id) {
    return id.worker == worker && id.incarnation != incarnation;
  };
  std::erase_if(waiting_, [&](const TrainingPush& push) { return is_older(push.id); });
  std::erase_if(unanswered_pushes_, [&](const TrainingPush& push) { return is_older(push.id); });
  work();
}

void ScheduledServer::push(const TrainingPush& push) {
  if (rule_.is_resting(push.id.worker, push.id.incarnation)) {  // the worker pushes again
    rule_.join(push.id.worker, push.id.incarnation, push.id.sequence - 1);
  }
  if (!rule_.takes_part(push.id.worker, push.id.incarnation)) return;
  if (rule_.is_restored(push.id)) {  // the worker has had no answer
    events_.push_back({ServerEvent::Kind::kDropped, push});
    unanswered_pushes_.push_back(push);
    return work();
  }
  if (!rule_.accept(push.id)) {
    mistakes_.emplace_back("a sequence was pushed twice");
    return;
  }
  waiting_.push_back(push);
  work();
}

void ScheduledServer::work() {
  for (bool is_busy = true; is_busy;) {
    is_busy = false;
    if (snapshot_ && !has_copied_ && rule_.has_reached_limits(waiting_)) {
      copies_[snapshot_->snapshot] = {applied_, version_, rule_.clocks(), {}};
      has_copied_ = true;
      rule_.release();
    }
    if (drop_late() || apply_next() || rest()) is_busy = true;
  }
  answer();
}

// A worker that server 0 reports as idle rests here once this server has processed its last push.
bool ScheduledServer::rest() {
  bool has_changed = false;
  for (const WorkerClock& clock : rule_.clocks()) {
    const auto resting = resting_.find(clock.worker);
    if (resting == resting_.end() || clock.sequence < resting->second) continue;
    if (!rule_.takes_part(clock.worker, clock.incarnation)) continue;
    if (rule_.accepted(clock.worker) > resting->second) {
      resting_.erase(resting);  // the worker pushes again
      continue;
    }
    rule_.rest(clock.worker, clock.incarnation);
    has_changed = true;
  }
  return has_changed;
}

bool ScheduledServer::drop_late() {
  for (auto push = waiting_.begin(); push != waiting_.end(); ++push) {
    if (!rule_.is_late(*push, version_) || !rule_.snapshot_lets_begin(push->id)) continue;
    rule_.advance(push->id);
    events_.push_back({ServerEvent::Kind::kDropped, *push});
    unanswered_pushes_.push_back(*push);
    waiting_.erase(push);
    return true;
  }
  return false;
}

bool ScheduledServer::apply_next() {
  std::vector<std::size_t> chosen = rule_.choose(waiting_, version_);
  if (chosen.empty()) return false;
  ++version_;
  for (const std::size_t at : chosen) {
    const TrainingPush& push = waiting_[at];
    rule_.advance(push.id);
    applied_.push_back(push);
    events_.push_back({ServerEvent::Kind::kApplied, push, version_});
    unanswered_pushes_.push_back(push);
  }
  std::sort(chosen.rbegin(), chosen.rend());
  for (const std::size_t at : chosen) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return true;
}

void ScheduledServer::answer() {
  std::erase_if(unanswered_pushes_, [&](TrainingPush& push) {
    const bool may_read = rule_.is_resting(push.id.worker, push.id.incarnation) ||
                          rule_.may_read(push.id.worker, push.id.sequence);
    if (!may_read) return false;
    push.version = version_;
    events_.push_back({ServerEvent::Kind::kAnswered, push});
    return true;
  });
}

std::vector<ServerEvent> ScheduledServer::take_ended_steps() { return std::exchange(events_, {}); }

void ScheduledServer::finish_snapshot(std::vector<std::byte> coordinator) {
  wire::SnapshotDoneT done;
  done.snapshot = snapshot_->snapshot;
  if (snapshot_->to_file) {
    Copy file = copies_[snapshot_->snapshot];
    file.coordinator = std::move(coordinator);
    files_[snapshot_->snapshot] = std::move(file);
    while (files_.size() > Coordinator::kKeptSnapshots) files_.erase(files_.begin());
  }
  snapshot_.reset();
  has_copied_ = false;
  replies.push_back(wire::make_message(std::move(done)));
}

void ScheduledServer::roll_back(const wire::RollBackT& back) {
  const auto file = files_.find(back.snapshot);
  if (file == files_.end()) {
    mistakes_.emplace_back("RollBack to a snapshot without a file");
    return;
  }
  applied_ = file->second.applied;
  version_ = file->second.version;
  rule_ = ScheduledRule(consistency_);
  rule_.restore(file->second.clocks);
  waiting_.clear();
  unanswered_pushes_.clear();
  resting_.clear();
  frozen_.reset();
  snapshot_.reset();
  has_copied_ = false;
  replies.push_back(wire::make_message(wire::RollBackT(back)));
}

}  // namespace syncopate::ps
