#include "ps/coordinator/snapshots.h"

#include <algorithm>
#include <utility>

#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {

void Snapshots::request() {
  const bool is_being_copied = stage_ == Stage::kFreezing || stage_ == Stage::kCopying;
  if (is_being_copied && purpose_.snapshot) return;  // the last timed snapshot is not complete yet
  // A timed snapshot stays due while a snapshot for another purpose is made: frequent checkpoints
  // would otherwise prevent it altogether.
  if (job_.options.writes_snapshots) due_.snapshot = true;
}

void Snapshots::on_batches_trained(std::int64_t count) {
  if (count == 0 || job_.is_synchronous() || leases_.all_trained()) return;  // a final one follows
  const wire::DeclarationT& declaration = *job_.declaration;
  const bool writes = declaration.writes_checkpoints;
  const std::int64_t every_steps = declaration.checkpoint_every_steps;
  const std::int64_t eval_steps = declaration.eval_every_steps;
  // Whether a multiple of `every` lies in (before, now]; `every` is 0 for none.
  const auto has_passed = [](std::int64_t before, std::int64_t now, std::int64_t every) {
    return every > 0 && now / every != before / every;
  };
  const std::int64_t steps_before = leases_.step_before(count);
  const std::int64_t steps = leases_.step_before(0);
  if (writes && has_passed(steps_before, steps, every_steps)) due_.writes_checkpoint = true;
  if (has_passed(steps_before, steps, eval_steps)) due_.evaluates = true;
  const std::int64_t per_epoch = leases_.batches_per_epoch();
  const std::int64_t epochs_before = (leases_.batches_trained() - count) / per_epoch;
  const std::int64_t epochs = leases_.batches_trained() / per_epoch;
  if (eval_steps == 0 && has_passed(epochs_before, epochs, declaration.eval_every_epochs)) {
    due_.evaluates = true;
  }
  if (writes && every_steps == 0 && epochs != epochs_before) due_.writes_checkpoint = true;
}

bool Snapshots::may_begin() const {
  // A worker that connects to the shards has pushed nothing, and pushes nothing while a snapshot is
  // copied: Registration starts it afterwards. It makes no difference which shards know the worker
  // when they copy. Synchronous workers join all together, and no step is under way then.
  const bool waits_for_joining = job_.is_synchronous() && (job_.is_any(WorkerPhase::kJoining) ||
                                                           job_.is_any(WorkerPhase::kReady));
  return job_.phase == Job::Phase::kTraining && !is_final_done_ && leases_.has_begun() &&
         job_.all_servers_serve() && !job_.is_rolling_back && !waits_for_joining;
}

void Snapshots::advance() {
  switch (stage_) {
    case Stage::kNone:
      if ((due_.any() || leases_.is_finished()) && may_begin()) begin();
      return;
    case Stage::kFreezing:
      if (all_answered()) send_copy_order();
      return;
    case Stage::kCopying:
      if (is_copied()) finish_copying();
      return;
    case Stage::kAssigning:
      send_assignment();
      return;
  }
}

void Snapshots::begin() {
  stage_ = Stage::kFreezing;
  purpose_ = std::exchange(due_, {});
  if (purpose_.evaluates && job_.declaration->writes_checkpoints) {
    purpose_.writes_checkpoint |= job_.declaration->saves_evaluated;
  }
  is_final_ = leases_.is_finished();
  if (is_final_) purpose_.writes_checkpoint = job_.declaration->writes_checkpoints;
  answered_.clear();
  is_unwritten_ = false;
  limits_.clear();
  staleness_.clear();
  assigned_.reset();
  is_assignment_sent_ = false;
  ++job_.last_snapshot;
  job_.is_copying = true;
  leases_.begin_snapshot();
  wire::FreezeT freeze;
  freeze.snapshot = job_.last_snapshot;
  job_.send_to_servers(freeze);
}

void Snapshots::on_frozen(int server, const wire::FrozenT& frozen) {
  if (!is_of_current(Stage::kFreezing, frozen.snapshot)) return;
  answered_.insert(server);
  for (const wire::SnapshotEntry& entry : frozen.entries) {
    if (entry.worker() < 0 || entry.worker() >= job_.num_workers()) continue;
    const std::uint32_t incarnation = job_.worker(entry.worker()).incarnation;
    if (entry.incarnation() > incarnation) continue;
    // Shard 0 may not know yet that a worker was replaced: its copy has the pushes of the
    // predecessor. The new incarnation has pushed nothing.
    const bool is_replaced = server == 0 && !job_.is_training(entry.worker());
    if (entry.incarnation() < incarnation && !is_replaced) continue;
    Limit& limit = limits_[entry.worker()];
    limit.incarnation = incarnation;
    limit.sequence = std::max(limit.sequence, entry.sequence());
    limit.is_of_shard_0 = limit.is_of_shard_0 || server == 0;
  }
}

void Snapshots::send_copy_order() {
  stage_ = Stage::kCopying;
  answered_.clear();
  wire::SnapshotT snapshot;
  snapshot.snapshot = job_.last_snapshot;
  for (const auto& [worker, limit] : limits_) {
    if (!job_.is_training(worker)) continue;
    snapshot.entries.emplace_back(worker, limit.incarnation, limit.sequence);
  }
  snapshot.to_file = purpose_.snapshot;
  // An evaluation uses the moving average, which is a slot.
  const bool reads_average =
      (purpose_.evaluates || is_final_) && average_decay_of(*job_.declaration) > 0.0;
  snapshot.with_slots = purpose_.snapshot || purpose_.writes_checkpoint || reads_average;
  job_.send_to_servers(snapshot);
}

void Snapshots::on_copied(int server, const wire::SnapshotDoneT& done) {
  if (!is_of_current(Stage::kCopying, done.snapshot)) return;
  if (!answered_.insert(server).second) return;
  if (purpose_.snapshot) job_.server(server).snapshots.insert(done.snapshot);
  is_unwritten_ |= done.not_written;
  for (const auto& entry : done.staleness) {
    staleness_[entry->worker].merge(from_wire(*entry));
  }
}

bool Snapshots::is_copied() const {
  if (!all_answered()) return false;
  // The job's progress at the snapshot is known only once shard 0 has reported all pushes that the
  // copies include.
  return std::all_of(limits_.begin(), limits_.end(), [&](const auto& entry) {
    const WorkerRecord& worker = job_.worker(entry.first);
    return !job_.is_training(entry.first) || worker.incarnation != entry.second.incarnation ||
           worker.last_push >= entry.second.sequence;
  });
}

std::map<WorkerId, std::uint64_t> Snapshots::sequences() const {
  // If shard 0 had no session of a worker when the servers froze for the snapshot, its copy holds
  // no push of that worker.
  std::map<WorkerId, std::uint64_t> sequences;
  for (int w = 0; w < job_.num_workers(); ++w) sequences[w] = 0;
  for (const auto& [worker, limit] : limits_) {
    if (limit.is_of_shard_0) sequences[worker] = limit.sequence;
  }
  return sequences;
}

void Snapshots::finish_copying() {
  progress_ = leases_.as_of_last_update(sequences());
  if (is_unwritten_) {
    for (ServerRecord& server : job_.servers) server.snapshots.erase(job_.last_snapshot);
  } else if (purpose_.snapshot) {
    keep(save_job());
  }
  leases_.end_snapshot();
  job_.is_copying = false;
  stage_ = Stage::kAssigning;
  StalenessHistogram all;
  for (const auto& [worker, histogram] : staleness_) all.merge(histogram);
  leases_.set_staleness(all.mean(), all.max());
  // A job that is stopped early ends without an evaluation; it is evaluated when it is resumed and
  // reaches its end.
  const bool is_stopped_early =
      leases_.stopped_by().value_or(StopKind::kComplete) != StopKind::kComplete;
  purpose_.evaluates = !is_stopped_early && (purpose_.evaluates || is_final_);
  if (!is_final_ && !purpose_.evaluates && !purpose_.writes_checkpoint) return release();
  send_assignment();
}

void Snapshots::send_assignment() {
  if (!assigned_) {
    assigned_ = job_.lowest_training();
    is_assignment_sent_ = false;
  }
  if (!assigned_ || is_assignment_sent_ || !job_.is_training(*assigned_)) return;
  is_assignment_sent_ = true;
  wire::AssignmentT assignment;
  assignment.snapshot = job_.last_snapshot;
  assignment.evaluates = purpose_.evaluates;
  assignment.writes_checkpoint = purpose_.writes_checkpoint;
  assignment.is_final = is_final_;
  assignment.stopped_by = to_wire(is_final_ ? leases_.stopped_by() : std::nullopt);
  set_position(assignment, progress_.at);
  assignment.loss = progress_.loss;
  assignment.metric = progress_.metric;
  assignment.repeated_batches = leases_.repeated_batches();
  assignment.num_bad_in_epoch = leases_.status().num_bad_in_epoch;
  for (const auto& [worker, histogram] : staleness_) {
    assignment.staleness.push_back(to_wire(worker, histogram));
  }
  job_.send_to_worker(*assigned_, std::move(assignment));
}

void Snapshots::on_assignment_done(int worker, const wire::AssignmentDoneT& done) {
  if (!is_of_current(Stage::kAssigning, done.snapshot) || assigned_ != worker) return;
  is_final_done_ = is_final_;
  if (!done.rules.empty()) leases_.set_rules(done.rules);
  release();
}

void Snapshots::release() {
  wire::ReleaseT release;
  release.snapshot = job_.last_snapshot;
  release.is_void = stage_ != Stage::kAssigning || is_unwritten_;
  job_.send_to_servers(release);
  stage_ = Stage::kNone;
}

void Snapshots::on_worker_lost(int worker) {
  if (assigned_ == worker) assigned_.reset();
}

void Snapshots::resend_assignment(int worker) {
  if (assigned_ == worker) is_assignment_sent_ = false;
}

void Snapshots::abandon() {
  if (stage_ == Stage::kNone) return;
  due_.snapshot |=
      purpose_.snapshot && stage_ != Stage::kAssigning;  // kAssigning: the snapshot's files exist
  due_.evaluates |= purpose_.evaluates && !is_final_;
  due_.writes_checkpoint |= purpose_.writes_checkpoint && !is_final_;
  if (stage_ != Stage::kAssigning) {
    for (ServerRecord& server : job_.servers) server.snapshots.erase(job_.last_snapshot);
  }
  if (job_.is_copying) leases_.end_snapshot();
  job_.is_copying = false;
  release();
}

void Snapshots::roll_back_to(std::uint64_t snapshot) {
  abandon();
  due_ = {};
  kept_.erase(kept_.upper_bound(snapshot), kept_.end());
}

JobSnapshot Snapshots::save_job() const {
  JobSnapshot saved;
  saved.number = job_.last_snapshot;
  saved.generation = job_.generation;
  saved.declaration = *job_.declaration;
  saved.declared_by = job_.declared_by;
  for (const WorkerRecord& worker : job_.workers) {
    saved.worker_incarnations.push_back(worker.incarnation);
  }
  for (const auto& [worker, sequence] : sequences()) saved.worker_pushes.push_back(sequence);
  for (const ServerRecord& server : job_.servers) {
    saved.servers.push_back({server.incarnation,
                             server.endpoint,
                             server.fingerprint,
                             {server.snapshots.begin(), server.snapshots.end()}});
  }
  leases_.save(sequences(), saved);
  return saved;
}

void Snapshots::keep(JobSnapshot saved) {
  const std::uint64_t number = saved.number;
  kept_.insert_or_assign(number, std::move(saved));
  while (kept_.size() > Coordinator::kKeptSnapshots) kept_.erase(kept_.begin());
}

}  // namespace syncopate::ps
