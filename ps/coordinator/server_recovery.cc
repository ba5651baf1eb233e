#include "ps/coordinator/server_recovery.h"

#include <algorithm>
#include <string>

#include "ps/coordinator/reconnect_timeout.h"

namespace syncopate::ps {

void ServerRecovery::on_rolled_back(int server, const wire::RollBackT& back) {
  ServerRecord& record = job_.server(server);
  if (record.phase != ServerPhase::kRollingBack || targets_[server] != back.snapshot) return;
  // Ignores an answer to a RollBack of a previous server 0, which may have named the same snapshot.
  if (back.incarnation != 0 && back.incarnation != record.incarnation) return;
  if (back.lost) {
    // The server has no valid file of the snapshot. advance() chooses an older snapshot: at once if
    // each server rolls back alone, otherwise once all servers have answered.
    record.snapshots.erase(back.snapshot);
    record.phase = ServerPhase::kEmpty;
    return;
  }
  record.phase = ServerPhase::kServing;
  record.was_serving = true;
  // If all servers roll back together, the workers receive the server addresses when all are ready.
  if (!job_.is_rolling_back) job_.send_roster();
}

void ServerRecovery::advance() {
  if (job_.phase != Job::Phase::kInitialising && job_.phase != Job::Phase::kTraining) return;
  const bool is_any_empty =
      std::any_of(job_.servers.begin(), job_.servers.end(),
                  [](const ServerRecord& server) { return server.phase == ServerPhase::kEmpty; });
  if (is_any_empty) {
    if (!leases_.has_begun()) return fail_without_snapshot();
    if (job_.consistency() == Consistency::kAsync) return roll_back_alone();
    return roll_back_together();
  }
  if (job_.is_rolling_back && job_.all_servers_serve()) finish_roll_back();
}

void ServerRecovery::roll_back_alone() {
  for (int s = 0; s < job_.num_servers(); ++s) {
    const ServerRecord& server = job_.server(s);
    if (server.phase != ServerPhase::kEmpty) continue;
    if (server.snapshots.empty()) return fail_without_snapshot();
    send_roll_back(s, *server.snapshots.rbegin());
  }
}

void ServerRecovery::roll_back_together() {
  const bool are_all_there =
      std::all_of(job_.servers.begin(), job_.servers.end(), [](const ServerRecord& server) {
        return server.phase == ServerPhase::kServing || server.phase == ServerPhase::kEmpty;
      });
  if (!are_all_there) return;
  const std::optional<std::uint64_t> snapshot = newest_of_all();
  if (!snapshot) return fail_without_snapshot();
  if (job_.is_synchronous() && job_.is_any(WorkerRecord::Phase::kLeft)) {
    return job_.fail(
        "a server was restarted after some workers had left, and the steps that it lost cannot be "
        "trained again" +
        again_advice(job_.declaration->writes_checkpoints));
  }
  snapshots_.roll_back_to(*snapshot);
  job_.is_rolling_back = true;
  for (int s = 0; s < job_.num_servers(); ++s) {
    ServerRecord& server = job_.server(s);
    if (server.phase == ServerPhase::kServing) {
      // Gives the server a new incarnation, so that pushes that were sent before the roll-back and
      // arrive later do not count.
      const auto incarnation = job_.next_incarnation(server.incarnation);
      if (!incarnation) return job_.fail(describe_server(s) + " went back to snapshots too often");
      server.incarnation = *incarnation;
      job_.welcome_server(s);
    }
    send_roll_back(s, *snapshot);
  }
}

std::optional<std::uint64_t> ServerRecovery::newest_of_all() const {
  for (auto kept = snapshots_.kept().rbegin(); kept != snapshots_.kept().rend(); ++kept) {
    const auto has_it = [&](const ServerRecord& server) {
      return server.snapshots.contains(kept->first);
    };
    if (std::all_of(job_.servers.begin(), job_.servers.end(), has_it)) return kept->first;
  }
  return std::nullopt;
}

void ServerRecovery::send_roll_back(int server, std::uint64_t snapshot) {
  ServerRecord& record = job_.server(server);
  record.phase = ServerPhase::kRollingBack;
  record.was_serving = false;
  record.snapshots.erase(record.snapshots.upper_bound(snapshot), record.snapshots.end());
  targets_[server] = snapshot;
  wire::RollBackT back;
  back.snapshot = snapshot;
  back.incarnation = record.incarnation;
  back.redone = job_.consistency() != Consistency::kAsync;
  const auto kept = snapshots_.kept().find(snapshot);
  // A restored coordinator does not know the steps after its snapshot; the workers that reconnect
  // tell them (Registration).
  const bool is_known = kept != snapshots_.kept().end() && !job_.awaits_counts;
  if (is_known) back.steps = leases_.progress().at.step - kept->second.progress.at.step;
  job_.send_to_server(server, back);
}

void ServerRecovery::finish_roll_back() {
  const std::uint64_t snapshot = targets_[0];
  leases_.restore(snapshots_.kept().at(snapshot));
  job_.is_rolling_back = false;
  exchange_.clear();
  registration_.roll_back_to(snapshot);
}

void ServerRecovery::fail_without_snapshot() {
  for (int s = 0; s < job_.num_servers(); ++s) {
    if (job_.server(s).phase != ServerPhase::kEmpty) continue;
    job_.has_lost_variables = true;
    return job_.fail(
        describe_server(s) + " reconnected without a snapshot file, and its variables are lost" +
        (job_.options.writes_snapshots ? again_advice(true)
                                       : "; give --checkpoint-dir so that servers keep snapshots"));
  }
}

}  // namespace syncopate::ps
