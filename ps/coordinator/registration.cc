#include "ps/coordinator/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
void Registration::set_num_workers(const wire::HelloT& hello) {
  if (job_.workers.empty()) job_.set_num_workers(hello.world_size);
}

void Registration::on_new_worker(const wire::HelloT& hello) {
  set_num_workers(hello);
  WorkerRecord& record = job_.worker(hello.index);
  const std::uint32_t incarnation = job_.next_incarnation(record.incarnation).value();
  record = WorkerRecord{.phase = record.phase,
                        .incarnation = incarnation,
                        .fingerprint = hello.fingerprint,
                        .call = hello.call,
                        .host = hello.host,
                        .pid = hello.pid,
                        .reason = ""};
  job_.set_phase(hello.index, WorkerPhase::kRegistering);
  take_declaration(hello);
}

bool Registration::on_repeated_hello(const wire::HelloT& hello) {
  if (job_.workers.empty()) return false;
  WorkerRecord& record = job_.worker(hello.index);
  const bool is_same = record.phase == WorkerPhase::kRegistering && !record.fits &&
                       record.host == hello.host && record.pid == hello.pid;
  if (!is_same) return false;
  record.was_asked = false;  // a request may have been lost with the connection
  record.call = hello.call;
  take_declaration(hello);
  return true;
}

void Registration::take_declaration(const wire::HelloT& hello) {
  if (!job_.declaration && hello.declaration != nullptr) {
    job_.declare(*hello.declaration, hello.index);
    for (int s = 0; s < job_.num_servers(); ++s) {
      if (job_.server(s).phase == ServerPhase::kDeclaring) send_declaration(s);
    }
    for (WorkerRecord& record : job_.workers) record.fits |= record.fingerprint == job_.fingerprint;
  }
  // find_refusal() has compared a declaration in the Hello with the job's.
  job_.worker(hello.index).fits |=
      job_.declaration && (hello.declaration != nullptr || hello.fingerprint == job_.fingerprint);
}

void Registration::request_declarations() {
  const auto is_waiting = [&](int worker) {
    const WorkerRecord& record = job_.worker(worker);
    return record.phase == WorkerPhase::kRegistering && !record.fits && !record.was_asked;
  };
  bool is_asked = std::ranges::any_of(job_.workers, [](const WorkerRecord& record) {
    return record.phase == WorkerPhase::kRegistering && record.was_asked && !record.fits;
  });
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (!is_waiting(w)) continue;
    if (!job_.declaration && is_asked) return;
    job_.send_to_worker(w, wire::DeclarationRequestT{});
    job_.worker(w).was_asked = is_asked = true;
  }
}

void Registration::on_worker_reconnect(const wire::HelloT& hello) {
  WorkerRecord& record = job_.worker(hello.index);
  record.call = hello.call;
  if (record.phase == WorkerPhase::kDisconnected) {
    job_.set_phase(hello.index, WorkerPhase::kTraining);
    record.incarnation = hello.incarnation;
    record.host = hello.host;
    record.pid = hello.pid;
    // The pushes that a reconnected worker made before server 0 was restarted are in the restored
    // values or lost. They will not be reported again, so they count as reported.
    record.last_push = hello.sequence;
    count_steps_after_snapshot(hello);
    if (!job_.is_any(WorkerPhase::kDisconnected)) report_steps_after_snapshot();
  }
  admit(hello.index);
  if (record.phase == WorkerPhase::kTraining && job_.phase == Job::Phase::kFinishing) {
    job_.send_to_worker(hello.index, wire::FinishedT{});
  }
  // The worker may have missed RollBack, and would then resend void pushes to the servers' new
  // addresses.
  if (record.must_roll_back) send_roll_back(hello.index);
}

void Registration::count_steps_after_snapshot(const wire::HelloT& hello) {
  const auto index = static_cast<std::size_t>(hello.index);
  const std::uint64_t known = index < job_.restored_pushes.size() ? job_.restored_pushes[index] : 0;
  const std::uint64_t more = hello.sequence > known ? hello.sequence - known : 0;
  std::uint64_t& steps = job_.steps_after_snapshot;
  // Synchronous workers push once in each step, together; the steps of other workers add up.
  steps = job_.is_synchronous() ? std::max(steps, more) : steps + more;
}

void Registration::report_steps_after_snapshot() {
  if (!std::exchange(job_.awaits_counts, false) || job_.steps_after_snapshot == 0) return;
  const bool is_one = job_.steps_after_snapshot == 1;
  log(LogLevel::kWarning,
      fmt::format("up to {} step{}{} after the last snapshot of server 0 {} done again",
                  job_.steps_after_snapshot, is_one ? "" : "s",
                  job_.is_synchronous() ? "" : " of workers", is_one ? "is" : "are"));
}

std::set<std::uint64_t> Registration::snapshots_of_job(const wire::HelloT& hello) const {
  std::set<std::uint64_t> snapshots(hello.snapshots.begin(), hello.snapshots.end());
  snapshots.erase(snapshots.upper_bound(job_.last_snapshot), snapshots.end());
  return snapshots;
}

void Registration::on_new_server(const wire::HelloT& hello) {
  set_num_workers(hello);
  ServerRecord& record = job_.server(hello.index);
  const std::uint32_t incarnation = job_.next_incarnation(record.incarnation).value();
  record = ServerRecord{.phase = ServerPhase::kDeclaring,
                        .incarnation = incarnation,
                        .endpoint = hello.server->endpoint,
                        .snapshots = {}};
  // Snapshot files that exist before a job begins belong to an older job.
  if (job_.phase != Job::Phase::kRegistering) record.snapshots = snapshots_of_job(hello);
  job_.welcome_server(hello.index);
  if (job_.declaration) send_declaration(hello.index);
}

void Registration::on_server_reconnect(const wire::HelloT& hello) {
  ServerRecord& record = job_.server(hello.index);
  if (hello.incarnation != record.incarnation) {
    // The server was restarted after the restored snapshot was made. It may not have gone back to a
    // snapshot yet, or may still do so on the order of the previous server 0. A new incarnation
    // tells its answer to that order from its answer to the order that follows.
    const auto next = job_.next_incarnation(hello.incarnation);
    if (!next) return job_.fail(describe_server(hello.index) + " was restarted too often");
    record.incarnation = *next;
    record.was_serving = false;
  }
  record.endpoint = hello.server->endpoint;
  // Takes the list of the server's files from its Hello: a previous server 0 may have known files
  // that were replaced since.
  record.snapshots = snapshots_of_job(hello);
  job_.welcome_server(hello.index);
  // A snapshot that a previous server 0 began will not be completed by this one.
  job_.send_to_server(hello.index, wire::ReleaseT{});
  if (record.was_serving) {
    record.phase = ServerPhase::kServing;
    job_.send_roster();
  } else {
    record.phase = ServerPhase::kDeclaring;
    if (job_.declaration) send_declaration(hello.index);
  }
  // The reconnected server may have missed WorkerLeft and Resting messages: these are sent again.
  for (WorkerRecord& worker : job_.workers) worker.is_resting = false;
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase != WorkerPhase::kLost) continue;
    wire::WorkerLeftT left;
    left.worker = w;
    left.incarnation = job_.worker(w).incarnation;
    job_.send_to_server(hello.index, left);
  }
}

void Registration::send_declaration(int server) {
  wire::DeclaredT declared;
  declared.declaration = std::make_unique<wire::DeclarationT>(*job_.declaration);
  job_.send_to_server(server, std::move(declared));
}

void Registration::on_declared(int server, const wire::DeclaredT& declared) {
  ServerRecord& record = job_.server(server);
  if (record.phase != ServerPhase::kDeclaring || !job_.declaration) return;
  for (int s = 0; s < job_.num_servers(); ++s) {
    const ServerRecord& other = job_.server(s);
    if (s == server || other.fingerprint == 0 || other.fingerprint == declared.fingerprint) {
      continue;
    }
    return job_.fail(fmt::format(
        "{} and {} compute different fingerprints of the same declaration, {} and {}; start all "
        "servers with the same version of the program",
        describe_server(server), describe_server(s), declared.fingerprint, other.fingerprint));
  }
  record.fingerprint = declared.fingerprint;
  const bool is_new_job = job_.phase == Job::Phase::kRegistering;
  record.phase = is_new_job ? ServerPhase::kServing : ServerPhase::kEmpty;
  record.was_serving = is_new_job;
}

void Registration::on_initialised(int worker, const wire::InitialisedT& initialised) {
  if (job_.phase != Job::Phase::kInitialising || worker != job_.initialiser ||
      job_.worker(worker).phase != WorkerPhase::kJoining || leases_.has_begun()) {
    return;
  }
  try {
    leases_.begin(position_of(initialised));
  } catch (const UsageError& error) {
    return job_.fail(error.what());
  }
  job_.set_phase(worker, WorkerPhase::kReady);
}

void Registration::on_ready(int worker, const wire::ReadyT& ready) {
  WorkerRecord& record = job_.worker(worker);
  // Pushes up to `ready.sequence` that were lost with a server's values will not be reported to the
  // coordinator, so they count as reported.
  record.last_push = std::max(record.last_push, ready.sequence);
  // A worker that trains may send Ready a second time after it has reconnected.
  if (record.phase == WorkerPhase::kTraining) return start(worker);
  if (record.phase != WorkerPhase::kJoining) return;
  // A Ready that was sent before the worker received the last RollBack refers to the old values.
  if (record.must_roll_back && ready.incarnation != server_0_incarnation_) return;
  record.must_roll_back = false;
  const bool has_values = worker != job_.initialiser || leases_.has_begun();
  if (!has_values) return;
  job_.set_phase(worker, WorkerPhase::kReady);
  record.counts_after = ready.sequence;
}

void Registration::advance() {
  if (job_.phase == Job::Phase::kRegistering) {
    if (job_.workers.empty()) return;
    request_declarations();
    if (!job_.all_servers_serve()) return;
    for (int w = 0; w < job_.num_workers(); ++w) {
      const bool may_start =
          job_.worker(w).phase == WorkerPhase::kRegistering && job_.worker(w).fits;
      if (!may_start && !job_.is_late_worker(w)) return;
    }
    job_.phase = Job::Phase::kInitialising;
  }
  if (job_.phase != Job::Phase::kInitialising && job_.phase != Job::Phase::kTraining) return;
  if (job_.is_any(WorkerPhase::kRegistering) && job_.all_servers_serve() && !job_.is_rolling_back) {
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.worker(w).phase == WorkerPhase::kRegistering && job_.worker(w).fits) admit(w);
    }
  }
  // No worker starts to push while a snapshot is copied.
  if (!leases_.has_begun() || job_.is_rolling_back || job_.is_copying) return;
  if (starts_together_) return start_together();
  if (!job_.is_any(WorkerPhase::kReady)) return;
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase == WorkerPhase::kReady) start(w);
  }
}

void Registration::start_together() {
  if (job_.is_any(WorkerPhase::kRegistering) || job_.is_any(WorkerPhase::kJoining)) return;
  if (!job_.is_any(WorkerPhase::kReady) ||
      (job_.is_synchronous() && job_.is_any(WorkerPhase::kDisconnected)))
    return;
  starts_together_ = false;
  job_.phase = Job::Phase::kTraining;
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase == WorkerPhase::kReady) start(w);
  }
}

void Registration::admit(int worker) {
  WorkerRecord& record = job_.worker(worker);
  if (record.phase == WorkerPhase::kRegistering) job_.set_phase(worker, WorkerPhase::kJoining);
  wire::WelcomeT welcome;
  welcome.incarnation = record.incarnation;
  welcome.call = record.call;
  welcome.peer_timeout_ms = job_.options.peer_timeout_ms;
  welcome.process = job_.options.process;
  welcome.initialises = worker == job_.initialiser && !leases_.has_begun();
  if (!record.must_roll_back) welcome.servers = job_.roster();
  job_.send_to_worker(worker, std::move(welcome));
}

void Registration::send_roll_back(int worker) {
  WorkerRecord& record = job_.worker(worker);
  job_.set_phase(worker, WorkerPhase::kJoining);
  record.must_roll_back = true;
  wire::RollBackT back;
  back.snapshot = rolled_back_to_;
  back.incarnation = server_0_incarnation_;
  job_.send_to_worker(worker, back);
  job_.send_roster_to(worker);
}

void Registration::start(int worker) {
  job_.set_phase(worker, WorkerPhase::kTraining);
  wire::StartT start;
  set_position(start, leases_.progress().at);
  job_.send_to_worker(worker, std::move(start));
}

void Registration::roll_back_to(std::uint64_t snapshot) {
  rolled_back_to_ = snapshot;
  server_0_incarnation_ = job_.server(0).incarnation;
  starts_together_ = true;
  for (int w = 0; w < job_.num_workers(); ++w) {
    WorkerRecord& record = job_.worker(w);
    if (job_.is_admitted(w)) send_roll_back(w);
    if (record.phase == WorkerPhase::kDisconnected) record.must_roll_back = true;
  }
}

}  // namespace syncopate::ps
