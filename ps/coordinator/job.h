// What all parts of the coordinator look at: who takes part, what was declared, how far the job is,
// and what is to be sent. Plain facts; the rules are in the parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ps/coordinator/coordinator.h"

namespace syncopate::ps {

struct WorkerRecord {
  enum class Phase : std::uint8_t {
    kAbsent,    // never seen
    kAway,      // known from a snapshot, has not called since
    kCalling,   // said hello, waits for Welcome
    kJoining,   // is welcome, meets the shards
    kReady,     // has met them, waits for Start
    kTraining,  // has had Start
    kLeft,
    kLost,
  };
  Phase phase = Phase::kAbsent;
  std::uint32_t incarnation = 0;
  std::uint64_t heard = 0;  // its last push that ended a step on shard 0
  // Later pushes count: those up to here were made before the servers went back to a cut.
  std::uint64_t began_after = 0;
  bool is_resting = false;  // servers were told so
  // All servers went back to a cut, and its Ready since then has not come.
  bool must_roll_back = false;
  std::string host;
  std::int64_t pid = 0;
  bool has_failed = false;  // the last incarnation said so
  std::string reason;       // why it was lost
};

struct ServerRecord {
  enum class Phase : std::uint8_t {
    kAbsent,
    kLost,
    kDeclaring,    // said hello; knows the declaration, or will, and has not answered
    kEmpty,        // has made its shard, whose values are lost: waits for RollBack
    kRollingBack,  // reads a snapshot
    kServing,
  };
  Phase phase = Phase::kAbsent;
  bool was_serving = false;  // this incarnation: its values are good when it calls again
  std::uint32_t incarnation = 0;
  std::string endpoint;
  std::uint64_t fingerprint = 0;
  std::set<std::uint64_t> snapshots;  // cuts that it has files of
};

struct Job {
  enum class Phase : std::uint8_t {
    kMeeting,       // not everybody has said hello
    kInitialising,  // workers are welcome; the first values are being written
    kTraining,
    kFinishing,  // after the last cut: workers are leaving
    kOver,
  };

  explicit Job(CoordinatorOptions with)
      : options(std::move(with)), servers(static_cast<std::size_t>(options.servers)) {
    while (comes_late(initialiser)) ++initialiser;
  }

  const CoordinatorOptions options;
  Phase phase = Phase::kMeeting;
  std::optional<std::string> failure;
  bool has_lost_variables = false;  // that is why: no snapshots are left that all servers have
  std::optional<wire::DeclarationT> declaration;
  int declared_by = 0;                // worker
  std::vector<WorkerRecord> workers;  // empty until the first hello says how many
  std::vector<ServerRecord> servers;
  int initialiser = 0;  // worker that writes the first values
  // How often shard 0 was started anew. Numbers given out since the snapshot it goes on from are
  // forgotten: new ones are far from them.
  int generation = 0;
  std::uint64_t last_cut = 0;
  bool is_copying = false;       // a cut is begun, and not all copies are made
  bool is_rolling_back = false;  // all servers are
  std::vector<Outgoing> outgoing;

  WorkerRecord& worker(int index) { return workers[static_cast<std::size_t>(index)]; }
  const WorkerRecord& worker(int index) const { return workers[static_cast<std::size_t>(index)]; }
  ServerRecord& server(int index) { return servers[static_cast<std::size_t>(index)]; }
  const ServerRecord& server(int index) const { return servers[static_cast<std::size_t>(index)]; }
  int num_workers() const { return static_cast<int>(workers.size()); }
  int num_servers() const { return static_cast<int>(servers.size()); }

  bool comes_late(int index) const;   // nobody waits for it at the start
  bool is_present(int index) const;   // it has said hello and is neither lost nor gone
  bool is_welcome(int index) const;   // present, and has had Welcome
  bool is_training(int index) const;  // present, and has had Start
  int count_present() const;
  std::optional<int> lowest_training() const;
  bool is_any(WorkerRecord::Phase at) const;
  bool all_servers_serve() const;
  // Of a party whose last one was this.
  std::uint32_t next_incarnation(std::uint32_t last) const;

  Consistency consistency() const;
  // Workers keep step: kSync without backup workers.
  bool is_in_step() const;
  // Batches whose gradients make one update: with backup workers those that are waited for. Workers
  // in step take one of the ledger's together.
  std::int64_t batches_per_step() const;

  template <typename BodyT>
  void tell_worker(int index, BodyT body) {
    outgoing.push_back({{Party::Role::kWorker, index},
                        worker(index).incarnation,
                        wire::make_message(std::move(body))});
  }
  template <typename BodyT>
  void tell_server(int index, BodyT body) {
    outgoing.push_back({{Party::Role::kServer, index},
                        server(index).incarnation,
                        wire::make_message(std::move(body))});
  }
  // To those that have had Welcome.
  template <typename BodyT>
  void tell_workers(const BodyT& body) {
    for (int w = 0; w < num_workers(); ++w) {
      if (is_welcome(w)) tell_worker(w, body);
    }
  }
  // To those that are there.
  template <typename BodyT>
  void tell_servers(const BodyT& body) {
    for (int s = 0; s < num_servers(); ++s) {
      const ServerRecord::Phase at = server(s).phase;
      if (at != ServerRecord::Phase::kAbsent && at != ServerRecord::Phase::kLost) {
        tell_server(s, body);
      }
    }
  }

  std::vector<std::unique_ptr<wire::ServerAddressT>> roster() const;
  void tell_roster_to(int index);
  void tell_roster();  // to those that have had Welcome
  // The job is over: everybody is told why.
  void fail(const std::string& reason);
};

std::string describe_worker(int index);  // "worker 2"
std::string describe_server(int index);  // "server 1"

}  // namespace syncopate::ps
