#include "ps/coordinator/cuts.h"

#include <algorithm>
#include <utility>

#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {

void Cuts::request_snapshot() {
  const bool is_being_copied = stage_ == Stage::kFreezing || stage_ == Stage::kCopying;
  if (is_being_copied && duties_.snapshot) return;  // the disk is slower than the interval
  // Behind a cut for something else it stays due, or frequent checkpoints would leave no moment.
  if (job_.options.writes_snapshots) due_.snapshot = true;
}

void Cuts::count_batch() {
  if (job_.is_in_step() || leases_.all_trained()) return;  // the final cut comes
  const wire::DeclarationT& declaration = *job_.declaration;
  const bool writes = declaration.writes_checkpoints;
  const std::int64_t every_steps = declaration.checkpoint_every_steps;
  if (writes && every_steps > 0 && leases_.has_ended_step() &&
      leases_.status().step % every_steps == 0) {
    due_.writes_checkpoint = true;
  }
  const std::int64_t eval_steps = declaration.eval_every_steps;
  if (eval_steps > 0 && leases_.has_ended_step() && leases_.status().step % eval_steps == 0) {
    due_.evaluates = true;
  }
  const std::int64_t batches = leases_.batches_trained();
  if (batches % leases_.batches_per_epoch() != 0) return;
  const std::int64_t epochs = batches / leases_.batches_per_epoch();
  const std::int64_t every_epochs = declaration.eval_every_epochs;
  if (eval_steps == 0 && every_epochs > 0 && epochs % every_epochs == 0) due_.evaluates = true;
  if (writes && every_steps == 0) due_.writes_checkpoint = true;
}

bool Cuts::may_begin() const {
  // A worker that meets the shards now would be counted by some before the copy and by others after
  // it, and under kSync be waited for while it waits for us.
  return job_.phase == Job::Phase::kTraining && !is_final_done_ && leases_.has_begun() &&
         job_.all_servers_serve() && !job_.is_rolling_back &&
         !job_.is_any(WorkerRecord::Phase::kJoining) && !job_.is_any(WorkerRecord::Phase::kReady);
}

void Cuts::advance() {
  switch (stage_) {
    case Stage::kNone:
      if ((due_.any() || leases_.is_finished()) && may_begin()) begin();
      return;
    case Stage::kFreezing:
      if (all_answered()) send_cut();
      return;
    case Stage::kCopying:
      if (is_copied()) finish_copying();
      return;
    case Stage::kAppointing:
      appoint();
      return;
  }
}

void Cuts::begin() {
  stage_ = Stage::kFreezing;
  duties_ = std::exchange(due_, {});
  is_final_ = leases_.is_finished();
  if (is_final_) duties_.writes_checkpoint = job_.declaration->writes_checkpoints;
  answered_.clear();
  limits_.clear();
  staleness_.clear();
  appointed_.reset();
  is_told_ = false;
  ++job_.last_cut;
  job_.is_copying = true;
  leases_.begin_cut();
  wire::FreezeT freeze;
  freeze.cut = job_.last_cut;
  job_.tell_servers(freeze);
}

void Cuts::hear(int server, const wire::FrozenT& frozen) {
  if (!is_of_current(Stage::kFreezing, frozen.cut)) return;
  answered_.insert(server);
  for (const wire::CutEntry& entry : frozen.entries) {
    if (entry.worker() < 0 || entry.worker() >= job_.num_workers()) continue;
    if (entry.incarnation() != job_.worker(entry.worker()).incarnation) continue;
    Limit& limit = limits_[entry.worker()];
    limit.incarnation = entry.incarnation();
    limit.sequence = std::max(limit.sequence, entry.sequence());
    limit.is_of_shard_0 = limit.is_of_shard_0 || server == 0;
  }
}

void Cuts::send_cut() {
  stage_ = Stage::kCopying;
  answered_.clear();
  wire::CutT cut;
  cut.cut = job_.last_cut;
  for (const auto& [worker, limit] : limits_) {
    if (!job_.is_training(worker)) continue;
    cut.entries.emplace_back(worker, limit.incarnation, limit.sequence);
  }
  cut.to_file = duties_.snapshot;
  cut.with_slots = duties_.snapshot || duties_.writes_checkpoint;
  for (int s = 0; s < job_.num_servers(); ++s) {
    wire::CutT own = cut;
    if (s == 0 && cut.to_file) {
      const std::vector<std::byte> saved = to_bytes(save());
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(saved.data());
      own.coordinator.assign(begin, begin + saved.size());
    }
    job_.tell_server(s, std::move(own));
  }
}

void Cuts::hear(int server, const wire::CutDoneT& done) {
  if (!is_of_current(Stage::kCopying, done.cut)) return;
  if (!answered_.insert(server).second) return;
  if (duties_.snapshot) job_.server(server).snapshots.insert(done.cut);
  for (const auto& entry : done.staleness) {
    staleness_[entry->worker].merge(StalenessHistogram::of(entry->counts, entry->sum, entry->max));
  }
}

bool Cuts::is_copied() const {
  if (!all_answered()) return false;
  // What is in the copy is known only when all its pushes have been heard of.
  return std::all_of(limits_.begin(), limits_.end(), [&](const auto& entry) {
    const WorkerRecord& worker = job_.worker(entry.first);
    return !job_.is_training(entry.first) || worker.incarnation != entry.second.incarnation ||
           worker.heard >= entry.second.sequence;
  });
}

std::map<WorkerId, std::uint64_t> Cuts::sequences() const {
  // Of a worker that shard 0 had not met when it froze, no push is in its copy.
  std::map<WorkerId, std::uint64_t> sequences;
  for (int w = 0; w < job_.num_workers(); ++w) sequences[w] = 0;
  for (const auto& [worker, limit] : limits_) {
    if (limit.is_of_shard_0) sequences[worker] = limit.sequence;
  }
  return sequences;
}

void Cuts::finish_copying() {
  progress_ = leases_.as_of(sequences());
  if (duties_.snapshot) keep(save());
  leases_.end_cut();
  job_.is_copying = false;
  stage_ = Stage::kAppointing;
  StalenessHistogram all;
  for (const auto& [worker, histogram] : staleness_) all.merge(histogram);
  leases_.note_staleness(all.mean(), all.max());
  // Whoever stops a job is in a hurry: it is evaluated when it has gone on to its end.
  const bool is_stopped = leases_.stopped_by().value_or(StopKind::kTimeIsUp) != StopKind::kTimeIsUp;
  duties_.evaluates = !is_stopped && (duties_.evaluates || is_final_);
  if (!is_final_ && !duties_.evaluates && !duties_.writes_checkpoint) return release();
  appoint();
}

void Cuts::appoint() {
  if (!appointed_) {
    appointed_ = job_.lowest_training();
    is_told_ = false;
  }
  if (!appointed_ || is_told_ || !job_.is_training(*appointed_)) return;
  is_told_ = true;
  wire::AppointmentT appointment;
  appointment.cut = job_.last_cut;
  appointment.evaluates = duties_.evaluates;
  appointment.writes_checkpoint = duties_.writes_checkpoint;
  appointment.is_final = is_final_;
  appointment.stopped_by = to_wire(is_final_ ? leases_.stopped_by() : std::nullopt);
  set_position(appointment, progress_.at);
  appointment.loss = progress_.loss;
  appointment.correct = progress_.correct;
  for (const auto& [worker, histogram] : staleness_) {
    auto entry = std::make_unique<wire::StalenessT>();
    entry->worker = worker;
    entry->counts = histogram.counts();
    entry->sum = histogram.sum();
    entry->max = histogram.max();
    appointment.staleness.push_back(std::move(entry));
  }
  job_.tell_worker(*appointed_, std::move(appointment));
}

void Cuts::hear(int worker, const wire::AppointmentDoneT& done) {
  if (!is_of_current(Stage::kAppointing, done.cut) || appointed_ != worker) return;
  is_final_done_ = is_final_;
  release();
}

void Cuts::release() {
  wire::ReleaseT release;
  release.cut = job_.last_cut;
  release.is_void = stage_ != Stage::kAppointing;
  job_.tell_servers(release);
  stage_ = Stage::kNone;
}

void Cuts::lose_worker(int worker) {
  if (appointed_ == worker) appointed_.reset();
}

void Cuts::tell_again(int worker) {
  if (appointed_ == worker) is_told_ = false;
}

void Cuts::abandon() {
  if (stage_ == Stage::kNone) return;
  due_.snapshot |= duties_.snapshot && stage_ != Stage::kAppointing;  // else its files stand
  due_.evaluates |= duties_.evaluates && !is_final_;
  due_.writes_checkpoint |= duties_.writes_checkpoint && !is_final_;
  if (stage_ != Stage::kAppointing) {
    for (ServerRecord& server : job_.servers) server.snapshots.erase(job_.last_cut);
  }
  if (job_.is_copying) leases_.end_cut();
  job_.is_copying = false;
  release();
}

void Cuts::go_back_to(std::uint64_t cut) {
  abandon();
  due_ = {};
  kept_.erase(kept_.upper_bound(cut), kept_.end());
}

SavedJob Cuts::save() const {
  SavedJob saved;
  saved.cut = job_.last_cut;
  saved.generation = job_.generation;
  saved.declaration = *job_.declaration;
  saved.declared_by = job_.declared_by;
  for (const WorkerRecord& worker : job_.workers) {
    saved.worker_incarnations.push_back(worker.incarnation);
  }
  for (const ServerRecord& server : job_.servers) {
    saved.servers.push_back({server.incarnation,
                             server.endpoint,
                             server.fingerprint,
                             {server.snapshots.begin(), server.snapshots.end()}});
  }
  const bool is_limited = stage_ == Stage::kCopying;
  leases_.save(is_limited ? sequences() : std::map<WorkerId, std::uint64_t>{}, saved);
  return saved;
}

void Cuts::keep(SavedJob saved) {
  const std::uint64_t cut = saved.cut;
  kept_.insert_or_assign(cut, std::move(saved));
  while (kept_.size() > Coordinator::kKeptCuts) kept_.erase(kept_.begin());
}

}  // namespace syncopate::ps
