#include "ps/coordinator/departures.h"

#include <algorithm>

#include "models/base/log.h"

namespace syncopate::ps {
namespace {

using Phase = WorkerRecord::Phase;
using ServerPhase = ServerRecord::Phase;

// "worker 2 (host b, pid 77) failed: the loss is nan", unless the reason names it itself.
std::string named(const std::string& name, const WorkerRecord& worker, const std::string& reason) {
  if (reason.find(name) != std::string::npos) return reason;
  return name + " (host " + worker.host + ", pid " + std::to_string(worker.pid) + ") " + reason;
}

}  // namespace

void Departures::lose_worker(int worker, const std::string& reason) {
  const bool is_away = job_.worker(worker).phase == Phase::kAway;
  if (!is_away && !job_.is_present(worker)) return;
  const std::string line = named(describe_worker(worker), job_.worker(worker), reason);
  drop_worker(worker, line);
  if (job_.is_in_step() && job_.phase != Job::Phase::kFinishing) job_.fail(line);
}

void Departures::worker_fails(int worker, const std::string& reason) {
  const std::string line = named(describe_worker(worker), job_.worker(worker), "failed: " + reason);
  // Another one would be appointed, and fail as it did: on a full disk all of them, one by one.
  const bool was_appointed = cuts_.has_appointed(worker);
  drop_worker(worker, line);
  job_.worker(worker).has_failed = true;
  if (job_.phase == Job::Phase::kFinishing) return;
  const bool have_all_failed = std::all_of(
      job_.workers.begin(), job_.workers.end(),
      [](const WorkerRecord& each) { return each.phase == Phase::kLost && each.has_failed; });
  // What goes wrong at the start is better seen at once than when the others have trained.
  const bool others_can = !have_all_failed && !was_appointed;
  if (!job_.is_in_step() && job_.phase == Job::Phase::kTraining && others_can) {
    return log(LogLevel::kWarning, line + "; the others go on");
  }
  job_.fail(line);
}

void Departures::worker_leaves(int worker) {
  // All go back: it hears so, and comes again.
  if (job_.is_in_step() && (job_.is_rolling_back || job_.worker(worker).must_roll_back)) return;
  const bool has_trained_all = job_.is_in_step() && job_.is_training(worker);
  if (job_.phase == Job::Phase::kFinishing || has_trained_all) {
    job_.worker(worker).phase = Phase::kLeft;
    // Who is in step leaves unasked, and waits for this word.
    if (has_trained_all) job_.tell_worker(worker, wire::FinishedT{});
    return;
  }
  lose_worker(worker, "left before the job was over");
}

void Departures::drop_worker(int worker, const std::string& reason) {
  WorkerRecord& record = job_.worker(worker);
  const bool is_known_to_servers = job_.is_welcome(worker) || record.phase == Phase::kAway;
  if (!is_known_to_servers && !job_.is_present(worker)) return;
  record.phase = Phase::kLost;
  record.reason = reason;
  if (is_known_to_servers) {
    wire::WorkerLeftT left;
    left.worker = worker;
    left.incarnation = record.incarnation;
    job_.tell_servers(left);
  }
  leases_.lose(worker);
  cuts_.lose_worker(worker);
}

void Departures::lose_server(int server, const std::string& reason) {
  const ServerPhase at = job_.server(server).phase;
  if (job_.phase == Job::Phase::kFinishing || at == ServerPhase::kAbsent) return;
  if (at == ServerPhase::kLost) return job_.fail(reason);
  drop_server(server);
}

void Departures::drop_server(int server) {
  ServerRecord& record = job_.server(server);
  if (record.phase == ServerPhase::kAbsent || record.phase == ServerPhase::kLost) return;
  record.phase = ServerPhase::kLost;
  cuts_.abandon();
  job_.tell_roster();
}

void Departures::give_up(const std::string& patience) {
  const std::optional<std::string> missing = awaited();
  if (!missing) return;
  const bool has_met = job_.phase != Job::Phase::kMeeting;
  std::string line = *missing + (has_met ? " did not come back" : " did not say hello") + " " +
                     patience + "; see what they printed, and whether all tasks were started";
  for (const WorkerRecord& worker : job_.workers) {
    if (!worker.reason.empty()) line += "; before, " + worker.reason;
  }
  job_.fail(line);
}

void Departures::advance() {
  if (job_.phase == Job::Phase::kTraining && cuts_.is_final_done()) {
    job_.phase = Job::Phase::kFinishing;
    wire::RefusedT refused;
    refused.line = "the job was over before this worker was let in";
    refused.is_over = !job_.options.nonce.empty();  // else it may be another job's
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.is_training(w)) {
        job_.tell_worker(w, wire::FinishedT{});
      } else if (job_.is_present(w) && !job_.is_welcome(w)) {
        job_.tell_worker(w, refused);
        job_.worker(w).phase = Phase::kLeft;
      }
    }
  }
  const auto has_left = [](const WorkerRecord& worker) { return worker.phase == Phase::kLeft; };
  if (job_.phase == Job::Phase::kTraining && job_.is_in_step() &&
      std::all_of(job_.workers.begin(), job_.workers.end(), has_left)) {
    job_.phase = Job::Phase::kFinishing;
  }
  if (job_.phase != Job::Phase::kFinishing || job_.count_present() > 0) return;
  job_.tell_servers(wire::FinishedT{});
  job_.phase = Job::Phase::kOver;
}

bool Departures::is_needed(int worker) const {
  if (job_.phase == Job::Phase::kMeeting) return !job_.comes_late(worker);
  if (job_.is_in_step()) return true;
  // The first values come from it, and nobody else has had the order to write them.
  if (!leases_.has_begun() && worker == job_.initialiser) return true;
  return job_.count_present() == 0;
}

std::optional<std::string> Departures::awaited() const {
  if (job_.phase == Job::Phase::kFinishing || job_.phase == Job::Phase::kOver) return std::nullopt;
  if (job_.workers.empty()) return "all tasks";
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (int w = 0; w < job_.num_workers(); ++w) {
    const bool is_gone = !job_.is_present(w) && job_.worker(w).phase != Phase::kLeft;
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
