#include "ps/coordinator/meeting.h"

#include <algorithm>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

using Phase = WorkerRecord::Phase;
using ServerPhase = ServerRecord::Phase;

}  // namespace

void Meeting::learn_size(const wire::HelloT& hello) {
  if (job_.workers.empty()) job_.workers.resize(static_cast<std::size_t>(hello.world_size));
}

void Meeting::worker_calls(const wire::HelloT& hello) {
  learn_size(hello);
  WorkerRecord& record = job_.worker(hello.index);
  const std::uint32_t incarnation = job_.next_incarnation(record.incarnation);
  record = WorkerRecord{.phase = Phase::kCalling,
                        .incarnation = incarnation,
                        .host = hello.host,
                        .pid = hello.pid,
                        .reason = ""};
  if (job_.declaration) return;
  job_.declaration = *hello.declaration;
  job_.declared_by = hello.index;
  for (int s = 0; s < job_.num_servers(); ++s) {
    if (job_.server(s).phase == ServerPhase::kDeclaring) declare_to(s);
  }
}

void Meeting::worker_calls_again(const wire::HelloT& hello) {
  WorkerRecord& record = job_.worker(hello.index);
  if (record.phase == Phase::kAway) {
    record.phase = Phase::kTraining;
    record.incarnation = hello.incarnation;
    record.host = hello.host;
    record.pid = hello.pid;
    // What it pushed before shard 0 was started anew is in the values or lost; it does not come.
    record.heard = hello.sequence;
  }
  welcome(hello.index);
  if (record.phase == Phase::kTraining && job_.phase == Job::Phase::kFinishing) {
    job_.tell_worker(hello.index, wire::FinishedT{});
  }
  // What was said of it may be lost: once it has heard where the servers are now, it sends them
  // again what belongs to the past.
  if (record.must_roll_back) send_back(hello.index);
}

void Meeting::server_calls(const wire::HelloT& hello) {
  learn_size(hello);
  ServerRecord& record = job_.server(hello.index);
  const std::uint32_t incarnation = job_.next_incarnation(record.incarnation);
  record = ServerRecord{.phase = ServerPhase::kDeclaring,
                        .incarnation = incarnation,
                        .endpoint = hello.server->endpoint,
                        .snapshots = {}};
  // Files that are there when a job begins are an older one's.
  if (job_.phase != Job::Phase::kMeeting) {
    for (const std::uint64_t cut : hello.snapshots) {
      if (cut <= job_.last_cut) record.snapshots.insert(cut);
    }
  }
  wire::WelcomeT welcome;
  welcome.incarnation = incarnation;
  welcome.peer_timeout_ms = job_.options.peer_timeout_ms;
  job_.tell_server(hello.index, std::move(welcome));
  if (job_.declaration) declare_to(hello.index);
}

void Meeting::server_calls_again(const wire::HelloT& hello) {
  ServerRecord& record = job_.server(hello.index);
  record.incarnation = hello.incarnation;
  record.endpoint = hello.server->endpoint;
  // What it has now; a former shard 0 knew of files that newer ones have replaced.
  record.snapshots.clear();
  for (const std::uint64_t cut : hello.snapshots) {
    if (cut <= job_.last_cut) record.snapshots.insert(cut);
  }
  wire::WelcomeT welcome;
  welcome.incarnation = record.incarnation;
  welcome.peer_timeout_ms = job_.options.peer_timeout_ms;
  job_.tell_server(hello.index, std::move(welcome));
  // A cut that a former shard 0 began ends nowhere.
  job_.tell_server(hello.index, wire::ReleaseT{});
  if (record.was_serving) {
    record.phase = ServerPhase::kServing;
    job_.tell_roster();
  } else {
    record.phase = ServerPhase::kDeclaring;
    if (job_.declaration) declare_to(hello.index);
  }
  // It may not have heard of those, nor of those that rest: they are named again.
  for (WorkerRecord& worker : job_.workers) worker.is_resting = false;
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase != Phase::kLost) continue;
    wire::WorkerLeftT left;
    left.worker = w;
    left.incarnation = job_.worker(w).incarnation;
    job_.tell_server(hello.index, left);
  }
}

void Meeting::declare_to(int server) {
  wire::DeclaredT declared;
  declared.declaration = std::make_unique<wire::DeclarationT>(*job_.declaration);
  job_.tell_server(server, std::move(declared));
}

void Meeting::declared(int server, const wire::DeclaredT& declared) {
  ServerRecord& record = job_.server(server);
  if (record.phase != ServerPhase::kDeclaring || !job_.declaration) return;
  for (int s = 0; s < job_.num_servers(); ++s) {
    const ServerRecord& other = job_.server(s);
    if (s == server || other.fingerprint == 0 || other.fingerprint == declared.fingerprint) {
      continue;
    }
    return job_.fail(
        describe_server(server) + " and " + describe_server(s) +
        " read one declaration as two, with fingerprints " + std::to_string(declared.fingerprint) +
        " and " + std::to_string(other.fingerprint) + "; are they of one version of the program?");
  }
  record.fingerprint = declared.fingerprint;
  const bool is_in_time = job_.phase == Job::Phase::kMeeting;
  record.phase = is_in_time ? ServerPhase::kServing : ServerPhase::kEmpty;
  record.was_serving = is_in_time;
}

void Meeting::initialised(int worker, const wire::InitialisedT& initialised) {
  if (job_.phase != Job::Phase::kInitialising || worker != job_.initialiser ||
      job_.worker(worker).phase != Phase::kJoining || leases_.has_begun()) {
    return;
  }
  try {
    leases_.begin(position_of(initialised));
  } catch (const UsageError& error) {
    return job_.fail(error.what());
  }
  job_.worker(worker).phase = Phase::kReady;
}

void Meeting::ready(int worker, const wire::ReadyT& ready) {
  WorkerRecord& record = job_.worker(worker);
  // Pushes that were lost with a server's values are not heard of any more.
  record.heard = std::max(record.heard, ready.sequence);
  // Whoever was welcomed again may say it again, or not.
  if (record.phase == Phase::kTraining) return start(worker);
  if (record.phase != Phase::kJoining) return;
  // Said before it heard of the last time, it means the values of before.
  if (record.must_roll_back && ready.incarnation != back_as_) return;
  record.must_roll_back = false;
  // It came too late to be told with the others.
  if (job_.phase == Job::Phase::kFinishing) {
    start(worker);
    return job_.tell_worker(worker, wire::FinishedT{});
  }
  const bool has_values = worker != job_.initialiser || leases_.has_begun();
  if (!has_values) return;
  record.phase = Phase::kReady;
  record.began_after = ready.sequence;
}

void Meeting::advance() {
  if (job_.phase == Job::Phase::kMeeting) {
    if (job_.workers.empty() || !job_.all_servers_serve()) return;
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.worker(w).phase != Phase::kCalling && !job_.comes_late(w)) return;
    }
    job_.phase = Job::Phase::kInitialising;
  }
  if (job_.phase != Job::Phase::kInitialising && job_.phase != Job::Phase::kTraining) return;
  if (job_.all_servers_serve() && !job_.is_copying && !job_.is_rolling_back) {
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.worker(w).phase == Phase::kCalling) welcome(w);
    }
  }
  if (!leases_.has_begun() || job_.is_rolling_back) return;
  if (starts_together_) return start_together();
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase == Phase::kReady) start(w);
  }
}

void Meeting::start_together() {
  if (job_.is_any(Phase::kCalling) || job_.is_any(Phase::kJoining)) return;
  if (!job_.is_any(Phase::kReady) || (job_.is_in_step() && job_.is_any(Phase::kAway))) return;
  starts_together_ = false;
  job_.phase = Job::Phase::kTraining;
  for (int w = 0; w < job_.num_workers(); ++w) {
    if (job_.worker(w).phase == Phase::kReady) start(w);
  }
}

void Meeting::welcome(int worker) {
  WorkerRecord& record = job_.worker(worker);
  if (record.phase == Phase::kCalling) record.phase = Phase::kJoining;
  wire::WelcomeT welcome;
  welcome.incarnation = record.incarnation;
  welcome.peer_timeout_ms = job_.options.peer_timeout_ms;
  welcome.initialises = worker == job_.initialiser && !leases_.has_begun();
  if (!record.must_roll_back) welcome.servers = job_.roster();
  job_.tell_worker(worker, std::move(welcome));
}

void Meeting::send_back(int worker) {
  WorkerRecord& record = job_.worker(worker);
  record.phase = Phase::kJoining;
  record.must_roll_back = true;
  wire::RollBackT back;
  back.cut = back_at_;
  back.incarnation = back_as_;
  job_.tell_worker(worker, back);
  job_.tell_roster_to(worker);
}

void Meeting::start(int worker) {
  job_.worker(worker).phase = Phase::kTraining;
  wire::StartT start;
  set_position(start, leases_.progress().at);
  job_.tell_worker(worker, std::move(start));
}

void Meeting::go_back_to(std::uint64_t cut) {
  back_at_ = cut;
  back_as_ = job_.server(0).incarnation;
  starts_together_ = true;
  for (int w = 0; w < job_.num_workers(); ++w) {
    WorkerRecord& record = job_.worker(w);
    if (job_.is_welcome(w)) send_back(w);
    if (record.phase == Phase::kAway) record.must_roll_back = true;
  }
}

}  // namespace syncopate::ps
