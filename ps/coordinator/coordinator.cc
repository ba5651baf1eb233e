#include "ps/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/failure_handling.h"
#include "ps/coordinator/job.h"
#include "ps/coordinator/job_snapshot.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/refusals.h"
#include "ps/coordinator/registration.h"
#include "ps/coordinator/server_recovery.h"
#include "ps/coordinator/snapshots.h"
#include "ps/coordinator/text_exchange.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

// How far the snapshot numbers of two successive starts of server 0 lie apart: more snapshots than
// a job makes between the two.
constexpr std::uint64_t kSnapshotsPerGeneration = std::uint64_t{1} << 32U;

}  // namespace

struct Coordinator::State {
  explicit State(CoordinatorOptions options)
      : job(std::move(options)),
        leases(job),
        snapshots(job, leases),
        registration(job, leases),
        failures(job, leases, snapshots),
        exchange(job),
        recovery(job, leases, snapshots, registration, exchange) {}

  void on_worker_message(int worker, const wire::BodyUnion& body);
  void on_server_message(int server, const wire::BodyUnion& body);
  // Returns whether the push is from the current incarnation of a worker that trains, and was made
  // after the servers last rolled back.
  bool counts(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push) const;
  // Makes all progress of the job that the last event has made possible.
  void advance();
  void restore(JobSnapshot saved);

  Job job;
  LeaseQueue leases;
  Snapshots snapshots;
  Registration registration;
  FailureHandling failures;
  TextExchange exchange;
  ServerRecovery recovery;
};

Coordinator::Coordinator(CoordinatorOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

Coordinator::~Coordinator() = default;

Coordinator::HelloAnswer Coordinator::on_hello(const wire::HelloT& hello) {
  State& state = *state_;
  Job& job = state.job;
  if (auto refused = find_refusal(job, hello)) {
    // While tasks still register, the refusal of a task with wrong options ends the job: the others
    // would wait for that task until the rendezvous timeout. The refusal of a task of another job,
    // or of a replaced task, does not: no task waits for it.
    if (refused->is_usage_error && job.phase == Job::Phase::kRegistering) job.fail(refused->line);
    return {std::nullopt, 0, wire::make_message(std::move(*refused))};
  }
  if (lacks_declaration(job, hello)) {
    return {std::nullopt, 0, wire::make_message(wire::DeclarationRequestT{})};
  }
  const bool is_new = hello.incarnation == 0;
  HelloAnswer answer;
  if (hello.role == 0) {
    if (!is_new) {
      state.leases.keep(hello.index, from_wire(hello.held));
      state.snapshots.resend_assignment(hello.index);
      state.registration.on_worker_reconnect(hello);
    } else if (!state.registration.on_repeated_hello(hello)) {
      if (!job.workers.empty()) state.failures.remove_worker(hello.index, "was started again");
      state.registration.on_new_worker(hello);
    }
    answer.task = {TaskId::Role::kWorker, hello.index};
    answer.incarnation = job.worker(hello.index).incarnation;
  } else {
    if (is_new) {
      // The predecessor is removed before the new server registers. The removal abandons the
      // snapshot being made and tells all registered servers to remove its file; the new server may
      // have such a file and must not receive that message.
      state.failures.remove_server(hello.index);
      state.registration.on_new_server(hello);
    } else {
      state.snapshots.abandon();  // the server may have missed messages about the snapshot
      state.registration.on_server_reconnect(hello);
    }
    answer.task = {TaskId::Role::kServer, hello.index};
    answer.incarnation = job.server(hello.index).incarnation;
  }
  state.advance();
  return answer;
}

void Coordinator::on_message(const TaskId& from, const wire::MessageT& message) {
  State& state = *state_;
  const Job& job = state.job;
  if (job.phase == Job::Phase::kOver || from.index < 0) return;
  if (from.role == TaskId::Role::kWorker) {
    if (from.index >= job.num_workers() || !job.is_present(from.index)) return;
    state.on_worker_message(from.index, message.body);
  } else {
    if (from.index >= job.num_servers()) return;
    const ServerPhase at = job.server(from.index).phase;
    if (at == ServerPhase::kAbsent || at == ServerPhase::kLost) return;
    state.on_server_message(from.index, message.body);
  }
  state.advance();
}

void Coordinator::State::on_worker_message(int worker, const wire::BodyUnion& body) {
  switch (body.type) {
    case wire::Body::Failing:
      return failures.on_worker_failed(worker, *body.AsFailing());
    case wire::Body::Leaving:
      return failures.on_worker_left(worker);
    case wire::Body::StopRequest:
      // Synchronous workers learn of a stop request from each other, with their pushes.
      if (const auto kind = stop_kind_from_wire(body.AsStopRequest()->kind);
          kind && !job.is_synchronous()) {
        leases.stop(*kind);
      }
      return;
    default:
      break;
  }
  if (!job.is_admitted(worker)) return;
  switch (body.type) {
    case wire::Body::Initialised:
      return registration.on_initialised(worker, *body.AsInitialised());
    case wire::Body::Ready:
      return registration.on_ready(worker, *body.AsReady());
    case wire::Body::LeaseRequest:
      return leases.request(worker, body.AsLeaseRequest()->count);
    case wire::Body::AssignmentDone:
      return snapshots.on_assignment_done(worker, *body.AsAssignmentDone());
    case wire::Body::Exchange:
      return exchange.on_exchange(worker, *body.AsExchange());
    default:
      return;
  }
}

void Coordinator::State::on_server_message(int server, const wire::BodyUnion& body) {
  switch (body.type) {
    case wire::Body::Declared:
      return registration.on_declared(server, *body.AsDeclared());
    case wire::Body::Frozen:
      return snapshots.on_frozen(server, *body.AsFrozen());
    case wire::Body::SnapshotDone:
      return snapshots.on_copied(server, *body.AsSnapshotDone());
    case wire::Body::RollBack:
      return recovery.on_rolled_back(server, *body.AsRollBack());
    case wire::Body::WorkerLeft:
      return leases.on_departed(*body.AsWorkerLeft());
    case wire::Body::Failing:
      return failures.on_server_lost(
          server, describe_server(server) + " failed: " + body.AsFailing()->reason);
    default:
      return;
  }
}

void Coordinator::on_task_lost(const TaskId& task, const std::string& reason) {
  State& state = *state_;
  if (state.job.phase == Job::Phase::kOver || task.index < 0) return;
  if (task.role == TaskId::Role::kWorker) {
    if (task.index < state.job.num_workers()) state.failures.on_worker_lost(task.index, reason);
  } else if (task.index < state.job.num_servers()) {
    state.failures.on_server_lost(task.index, reason);
  }
  state.advance();
}

void Coordinator::on_rendezvous_timeout(const std::string& waited) {
  state_->failures.fail_missing(waited);
}

void Coordinator::on_reconnect_timeout() {
  state_->registration.report_steps_after_snapshot();
  state_->leases.on_reconnect_timeout();
  state_->advance();
}

void Coordinator::on_push_applied(WorkerId worker, std::uint32_t incarnation,
                                  const wire::PushT& push, std::uint64_t version) {
  State& state = *state_;
  if (!state.counts(worker, incarnation, push)) return;
  state.snapshots.on_batches_trained(state.leases.on_push_applied(worker, push, version));
  state.advance();
}

void Coordinator::on_push_dropped(WorkerId worker, std::uint32_t incarnation,
                                  const wire::PushT& push) {
  State& state = *state_;
  if (!state.counts(worker, incarnation, push)) return;
  state.leases.on_push_dropped(worker, push);
  state.advance();
}

bool Coordinator::State::counts(WorkerId worker, std::uint32_t incarnation,
                                const wire::PushT& push) const {
  if (worker < 0 || worker >= job.num_workers() || !job.is_training(worker)) return false;
  const WorkerRecord& record = job.worker(worker);
  return record.incarnation == incarnation && push.sequence > record.counts_after;
}

void Coordinator::set_staleness(double mean, std::uint64_t max) {
  state_->leases.set_staleness(mean, max);
}

void Coordinator::request_snapshot() {
  state_->snapshots.request();
  state_->advance();
}

void Coordinator::State::advance() {
  // Each part of the coordinator may make progress of the next one possible, and then has sent a
  // message: repeats until a pass sends nothing.
  for (std::size_t sent = job.outgoing.size() + 1; sent != job.outgoing.size();) {
    sent = job.outgoing.size();
    if (job.phase == Job::Phase::kOver) return;
    recovery.advance();
    snapshots.advance();  // before the registration: no worker starts during a snapshot
    registration.advance();
    leases.advance();
    exchange.advance();
    failures.advance();
  }
}

std::vector<Outgoing> Coordinator::take_outgoing() {
  return std::exchange(state_->job.outgoing, {});
}

bool Coordinator::has_started() const noexcept {
  return state_->job.phase == Job::Phase::kTraining ||
         state_->job.phase == Job::Phase::kFinishing ||
         (state_->job.phase == Job::Phase::kOver && !state_->job.failure);
}

bool Coordinator::is_over() const noexcept { return state_->job.phase == Job::Phase::kOver; }

const std::optional<std::string>& Coordinator::failure() const noexcept {
  return state_->job.failure;
}

bool Coordinator::has_lost_variables() const noexcept { return state_->job.has_lost_variables; }

wire::JobStatusT Coordinator::status() const { return state_->leases.status(); }

bool Coordinator::has_left(const TaskId& task) const noexcept {
  const Job& job = state_->job;
  return task.role == TaskId::Role::kWorker && task.index < job.num_workers() &&
         job.worker(task.index).phase == WorkerPhase::kLeft;
}

int Coordinator::live_workers() const noexcept { return state_->job.count_present(); }

std::vector<int> Coordinator::joining_workers() const {
  const Job& job = state_->job;
  std::vector<int> joining;
  const bool is_any = job.is_any(WorkerPhase::kJoining);
  if (!is_any || !job.all_servers_serve() || job.is_rolling_back) return joining;
  for (int w = 0; w < job.num_workers(); ++w) {
    if (job.worker(w).phase == WorkerPhase::kJoining) joining.push_back(w);
  }
  return joining;
}

std::optional<std::string> Coordinator::missing_tasks() const {
  return state_->failures.missing_tasks();
}

// Restores a job. All tasks count as disconnected; each may reconnect under its old incarnation.
void Coordinator::State::restore(JobSnapshot saved) {
  if (saved.servers.size() != job.servers.size()) {
    throw FileError(
        fmt::format("the snapshot is of a job with {} servers, but this job has {}; start {} "
                    "servers, or remove "
                    "the snapshot files",
                    saved.servers.size(), job.servers.size(), saved.servers.size()));
  }
  job.phase = Job::Phase::kTraining;
  job.declare(saved.declaration, saved.declared_by);
  job.generation = std::max(saved.generation + 1, job.options.life);
  job.last_snapshot = static_cast<std::uint64_t>(job.generation) * kSnapshotsPerGeneration;
  job.set_num_workers(static_cast<int>(saved.worker_incarnations.size()));
  job.restored_pushes = saved.worker_pushes;
  job.awaits_counts = true;
  for (int w = 0; w < job.num_workers(); ++w) {
    job.worker(w).incarnation = saved.worker_incarnations[static_cast<std::size_t>(w)];
    if (job.worker(w).incarnation != 0) job.set_phase(w, WorkerPhase::kDisconnected);
  }
  for (std::size_t s = 0; s < saved.servers.size(); ++s) {
    const JobSnapshot::Server& server = saved.servers[s];
    job.servers[s] = {.phase = ServerRecord::Phase::kLost,
                      .was_serving = true,
                      .incarnation = server.incarnation,
                      .endpoint = server.endpoint,
                      .fingerprint = server.fingerprint,
                      .snapshots = {server.snapshots.begin(), server.snapshots.end()}};
  }
  leases.restore(saved);
  if (saved.stopped_by) leases.stop(*saved.stopped_by);
  snapshots.keep(std::move(saved));
}

std::optional<std::vector<std::byte>> Coordinator::save(std::uint64_t snapshot) const {
  if (!state_->snapshots.is_copying_shard_0(snapshot)) return std::nullopt;
  return to_bytes(state_->snapshots.save_job());
}

void Coordinator::restore(std::span<const std::byte> saved_bytes) {
  state_->restore(job_snapshot_of(saved_bytes));
}

}  // namespace syncopate::ps
