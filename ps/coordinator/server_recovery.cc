#include "ps/coordinator/server_recovery.h"

#include <algorithm>
#include <string>

#include "ps/coordinator/resume_advice.h"

namespace syncopate::ps {

using Phase = ServerRecord::Phase;

void ServerRecovery::hear(int server, const wire::RollBackT& back) {
  ServerRecord& record = job_.server(server);
  if (record.phase != Phase::kRollingBack || targets_[server] != back.cut) return;
  // An answer to a former shard 0, which may have asked for the same.
  if (back.incarnation != 0 && back.incarnation != record.incarnation) return;
  if (back.lost) {
    // advance() chooses an older one that it still has; together, once the others are back.
    record.snapshots.erase(back.cut);
    record.phase = Phase::kEmpty;
    return;
  }
  record.phase = Phase::kServing;
  record.was_serving = true;
  // Together, the workers hear of it when all servers are back.
  if (!job_.is_rolling_back) job_.tell_roster();
}

void ServerRecovery::advance() {
  if (job_.phase != Job::Phase::kInitialising && job_.phase != Job::Phase::kTraining) return;
  const bool is_any_empty =
      std::any_of(job_.servers.begin(), job_.servers.end(),
                  [](const ServerRecord& server) { return server.phase == Phase::kEmpty; });
  if (is_any_empty) {
    if (!leases_.has_begun()) return fail_without_snapshot();
    if (job_.consistency() == Consistency::kAsync) return go_back_alone();
    return go_back_together();
  }
  if (job_.is_rolling_back && job_.all_servers_serve()) finish_together();
}

void ServerRecovery::go_back_alone() {
  for (int s = 0; s < job_.num_servers(); ++s) {
    const ServerRecord& server = job_.server(s);
    if (server.phase != Phase::kEmpty) continue;
    if (server.snapshots.empty()) return fail_without_snapshot();
    send_back(s, *server.snapshots.rbegin());
  }
}

void ServerRecovery::go_back_together() {
  const bool are_all_there =
      std::all_of(job_.servers.begin(), job_.servers.end(), [](const ServerRecord& server) {
        return server.phase == Phase::kServing || server.phase == Phase::kEmpty;
      });
  if (!are_all_there) return;
  const std::optional<std::uint64_t> cut = newest_of_all();
  if (!cut) return fail_without_snapshot();
  if (job_.is_in_step() && job_.is_any(WorkerRecord::Phase::kLeft)) {
    return job_.fail(
        std::string("a server was started again when some workers had left already, and cannot "
                    "train once more what it lost") +
        again_advice(job_.declaration->writes_checkpoints));
  }
  cuts_.go_back_to(*cut);
  job_.is_rolling_back = true;
  for (int s = 0; s < job_.num_servers(); ++s) {
    ServerRecord& server = job_.server(s);
    if (server.phase == Phase::kServing) {
      // What was pushed to it before and arrives later must not count.
      server.incarnation = job_.next_incarnation(server.incarnation);
      wire::WelcomeT welcome;
      welcome.incarnation = server.incarnation;
      welcome.peer_timeout_ms = job_.options.peer_timeout_ms;
      job_.tell_server(s, std::move(welcome));
    }
    send_back(s, *cut);
  }
}

std::optional<std::uint64_t> ServerRecovery::newest_of_all() const {
  for (auto kept = cuts_.kept().rbegin(); kept != cuts_.kept().rend(); ++kept) {
    const auto has_it = [&](const ServerRecord& server) {
      return server.snapshots.contains(kept->first);
    };
    if (std::all_of(job_.servers.begin(), job_.servers.end(), has_it)) return kept->first;
  }
  return std::nullopt;
}

void ServerRecovery::send_back(int server, std::uint64_t cut) {
  ServerRecord& record = job_.server(server);
  record.phase = Phase::kRollingBack;
  record.was_serving = false;
  record.snapshots.erase(record.snapshots.upper_bound(cut), record.snapshots.end());
  targets_[server] = cut;
  wire::RollBackT back;
  back.cut = cut;
  back.incarnation = record.incarnation;
  job_.tell_server(server, back);
}

void ServerRecovery::finish_together() {
  const std::uint64_t cut = targets_[0];
  leases_.restore(cuts_.kept().at(cut));
  job_.is_rolling_back = false;
  exchange_.clear();
  meeting_.go_back_to(cut);
}

void ServerRecovery::fail_without_snapshot() {
  for (int s = 0; s < job_.num_servers(); ++s) {
    if (job_.server(s).phase != Phase::kEmpty) continue;
    job_.has_lost_variables = true;
    return job_.fail(
        describe_server(s) + " came back without a snapshot file, and its variables are lost" +
        (job_.options.writes_snapshots ? again_advice(true)
                                       : "; give --checkpoint-dir so that servers keep snapshots"));
  }
}

}  // namespace syncopate::ps
