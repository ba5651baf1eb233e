#include "ps/coordinator/failure_handling.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/log.h"

namespace syncopate::ps {
namespace {

// Returns "worker 2 (host b, pid 77) failed: the loss is nan": the reason behind the worker's name,
// or the reason alone if it contains the name.
std::string with_name(const std::string& name, const WorkerRecord& worker,
                      const std::string& reason) {
  if (reason.find(name) != std::string::npos) return reason;
  return fmt::format("{} (host {}, pid {}) {}", name, worker.host, worker.pid, reason);
}

}  // namespace

void FailureHandling::on_worker_lost(int worker, const std::string& reason) {
  const bool is_disconnected = job_.worker(worker).phase == WorkerPhase::kDisconnected;
  if (!is_disconnected && !job_.is_present(worker)) return;
  const std::string line = with_name(describe_worker(worker), job_.worker(worker), reason);
  remove_worker(worker, line);
  const bool is_missed = job_.phase == Job::Phase::kRegistering && !job_.options.workers_return &&
                         !job_.is_late_worker(worker);
  if (is_missed) return job_.fail(line + ", before all tasks had registered");
  if (job_.is_synchronous() && job_.phase != Job::Phase::kFinishing) job_.fail(line);
}

void FailureHandling::on_worker_failed(int worker, const wire::FailingT& failing) {
  const std::string line =
      with_name(describe_worker(worker), job_.worker(worker), "failed: " + failing.reason);
  // A worker that fails while it is assigned to a snapshot ends the job: the next worker assigned
  // to it would fail for the same reason, for example a full disk.
  const bool was_assigned = snapshots_.is_assigned_to(worker);
  remove_worker(worker, line);
  job_.worker(worker).has_failed = true;
  if (job_.phase == Job::Phase::kFinishing) return;
  const bool have_all_failed = std::all_of(
      job_.workers.begin(), job_.workers.end(),
      [](const WorkerRecord& each) { return each.phase == WorkerPhase::kLost && each.has_failed; });
  // A task's failure during the start ends the job at once, before the other tasks have trained.
  const bool others_can = !have_all_failed && !was_assigned && !failing.ends_job;
  if (!job_.is_synchronous() && job_.phase == Job::Phase::kTraining && others_can) {
    return log(LogLevel::kWarning, line + "; the other workers continue");
  }
  job_.fail(line);
}

void FailureHandling::on_worker_left(int worker) {
  // The servers are rolling back: a leaving worker receives RollBack and registers again.
  if (job_.is_synchronous() && (job_.is_rolling_back || job_.worker(worker).must_roll_back)) return;
  const bool has_trained_all = job_.is_synchronous() && job_.is_training(worker);
  if (job_.phase == Job::Phase::kFinishing || has_trained_all) {
    job_.set_phase(worker, WorkerPhase::kLeft);
    // A synchronous worker leaves by itself after its last step, and waits for the message
    // Finished.
    if (has_trained_all) job_.send_to_worker(worker, wire::FinishedT{});
    return;
  }
  on_worker_lost(worker, "left before the job was over");
}

void FailureHandling::remove_worker(int worker, const std::string& reason) {
  WorkerRecord& record = job_.worker(worker);
  const bool is_known_to_servers =
      job_.is_admitted(worker) || record.phase == WorkerPhase::kDisconnected;
  if (!is_known_to_servers && !job_.is_present(worker)) return;
  job_.set_phase(worker, WorkerPhase::kLost);
  record.reason = reason;
  // A synchronous job ends with the worker. A server that learned that it left would apply the step
  // under way without its pushes, and a checkpoint of the other workers could hold that step.
  if (is_known_to_servers && !job_.is_synchronous()) {
    wire::WorkerLeftT left;
    left.worker = worker;
    left.incarnation = record.incarnation;
    job_.send_to_servers(left);
  }
  leases_.on_worker_lost(worker);
  snapshots_.on_worker_lost(worker);
}

void FailureHandling::on_server_lost(int server, const std::string& reason) {
  const ServerPhase at = job_.server(server).phase;
  if (job_.phase == Job::Phase::kFinishing || at == ServerPhase::kAbsent) return;
  if (at == ServerPhase::kLost) return job_.fail(reason);
  remove_server(server);
}

void FailureHandling::remove_server(int server) {
  ServerRecord& record = job_.server(server);
  if (record.phase == ServerPhase::kAbsent || record.phase == ServerPhase::kLost) return;
  record.phase = ServerPhase::kLost;
  snapshots_.abandon();
  job_.send_roster();
}

void FailureHandling::fail_missing(const std::string& waited) {
  const std::optional<std::string> missing = missing_tasks();
  if (!missing) return;
  const bool has_begun = job_.phase != Job::Phase::kRegistering;
  std::string line =
      fmt::format("{} did not {} {}; see their output, and check that all tasks were started",
                  *missing, has_begun ? "reconnect" : "register", waited);
  for (const WorkerRecord& worker : job_.workers) {
    if (!worker.reason.empty()) line += "; before that, " + worker.reason;
  }
  job_.fail(line);
}

void FailureHandling::advance() {
  if (job_.phase == Job::Phase::kTraining && snapshots_.is_final_done()) {
    job_.phase = Job::Phase::kFinishing;
    wire::RefusedT refused;
    refused.line = "the job was over before this worker could train";
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.is_training(w)) {
        job_.send_to_worker(w, wire::FinishedT{});
      } else if (job_.is_present(w)) {
        // Without a nonce, a worker that is not admitted may be of another job.
        refused.is_over = !job_.options.nonce.empty() || job_.is_admitted(w);
        job_.send_to_worker(w, refused);
        job_.set_phase(w, WorkerPhase::kLeft);
      }
    }
  }
  if (job_.phase == Job::Phase::kTraining && job_.is_synchronous() &&
      job_.count(WorkerPhase::kLeft) == job_.num_workers()) {
    job_.phase = Job::Phase::kFinishing;
  }
  if (job_.phase != Job::Phase::kFinishing || job_.count_present() > 0) return;
  job_.send_to_servers(wire::FinishedT{});
  job_.phase = Job::Phase::kOver;
}

bool FailureHandling::is_needed(int worker) const {
  if (job_.phase == Job::Phase::kRegistering) return !job_.is_late_worker(worker);
  if (job_.is_synchronous()) return true;
  // The initial values come from this worker; no other worker has been told to write them.
  if (!leases_.has_begun() && worker == job_.initialiser) return true;
  return job_.count_present() == 0;
}

std::optional<std::string> FailureHandling::missing_tasks() const {
  if (job_.phase == Job::Phase::kFinishing || job_.phase == Job::Phase::kOver) return std::nullopt;
  if (job_.workers.empty()) return "all tasks";
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (int w = 0; w < job_.num_workers(); ++w) {
    const bool is_gone = !job_.is_present(w) && job_.worker(w).phase != WorkerPhase::kLeft;
    if (is_gone && is_needed(w)) add(describe_worker(w));
  }
  for (int s = 0; s < job_.num_servers(); ++s) {
    const ServerPhase at = job_.server(s).phase;
    if (at == ServerPhase::kAbsent || at == ServerPhase::kLost) add(describe_server(s));
  }
  if (names.empty()) return std::nullopt;
  return names;
}

}  // namespace syncopate::ps
