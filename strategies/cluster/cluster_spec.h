// Who takes part in a job, and which of them this process is. Resolvers read it from flags and from
// what a launcher put in the environment; they only read. A source counts when it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/environment.h"
#include "ps/net/endpoint.h"
#include "strategies/cluster/task_placement.h"

namespace syncopate {

enum class Role : std::uint8_t { kWorker, kServer, kEvaluator };
std::string_view name(Role role) noexcept;  // "worker"

struct ClusterSpec {
  std::string source = "none";  // the row of resolvers() that won; "none": a process on its own
  Role role = Role::kWorker;
  int index = 0;        // among the tasks of its role; for workers this is the rank
  int world_size = 1;   // worker tasks
  int num_servers = 0;  // parameter servers
  int local_rank = 0;   // among the tasks on its host, where the source tells
  int local_size = 1;
  bool is_local_told = false;  // those two
  // How many tasks of this one's kind the fullest of their nodes has; 0: only local_size is known.
  int most_local_tasks = 0;
  bool is_bound = false;  // to CPUs that it shares with no other task
  int num_cpus = 0;       // that the source says it gave this task; 0: not told
  std::string node;       // this task's, as the source calls it; "": not told
  // Of all workers and servers, by index, where the source tells; held against what each says of
  // itself when they meet.
  std::vector<Place> worker_places;
  std::vector<Place> server_places;
  // This task's, as indices into what it sees, where the environment lists that.
  std::vector<int> gpus;
  // Where all meet: rank 0, or with servers the control socket of server 0. None: world_size is 1,
  // or MPI tells.
  std::optional<Endpoint> rendezvous;
  // Nobody chose it: host and port follow from names and numbers. Then the met task listens at
  // every interface.
  bool is_derived = false;
  std::uint16_t derived_port = 0;  // also where the host is not known; 0: none
  // To call where nobody knows rendezvous->host; "": nothing is known. It may be another machine's
  // unless it is certain.
  std::string other_host;
  bool is_other_host_certain = false;
  // An open socket that listens there, inherited from launch by the task that is met; -1: none.
  int rendezvous_descriptor = -1;
  std::string nonce;               // of the job; "": rank 0 makes one up
  bool restarts = false;           // a task that failed may come back while the others go on
  std::vector<int> late_workers;   // that are not there at the start, ascending
  std::vector<Endpoint> workers;   // where the source lists them (TF_CONFIG)
  std::vector<Endpoint> servers;   // ditto; server `index` binds its own
  std::vector<std::string> notes;  // one line per source that lost or was ignored: why

  bool is_chief() const noexcept { return role == Role::kWorker && index == 0; }
  // The others call this task at `rendezvous`.
  bool is_met() const noexcept {
    return index == 0 && role == (num_servers > 0 ? Role::kServer : Role::kWorker);
  }
};

// What the user said on the command line. With rank and world size it outranks everything; without
// them it completes or is held against what the environment says.
struct ClusterFlags {
  std::optional<int> rank;
  std::optional<int> world_size;
  std::optional<int> servers;
  std::string rendezvous;  // "host:port"; "host" where the source has a port of its own
  std::string nonce;
  std::optional<Role> role;           // of this part of the job
  std::optional<bool> wants_servers;  // by the strategy; nothing: not known
};

struct ResolverRow {
  std::string_view name;  // "torchrun"
  std::string_view help;
  // Nothing when the source is absent or incomplete (then with a note). Throws UsageError when it
  // is there and wrong.
  std::optional<ClusterSpec> (*resolve)(const ClusterFlags&, const Environment&,
                                        std::vector<std::string>& notes);
};
// In order of precedence: flags, launch, torchrun, TF_CONFIG, Open MPI, PMI, MVAPICH, JSM, Slurm,
// Horovod.
std::span<const ResolverRow> resolvers() noexcept;

// The first complete source wins; what comes after it, right or wrong, is a note, and completes a
// winner that does not tell where on its host this task is, if it gives it the same number of as
// many. Throws UsageError when a source that would have won is wrong, when the winner, unless it is
// the flags, says one task and another complete source says more (a silent shrink), or when flags
// without a rank do not fit what the environment says.
ClusterSpec resolve_cluster(const ClusterFlags& flags, const Environment& environment);

// "rank 1 of 2", "server 0 of 2"
std::string place_in_job(const ClusterSpec& spec);

// Why the task that says it is `index` of `role`, running at `reported`, cannot be the one that was
// placed elsewhere, and what to do. "": it can, or nothing is known of its place.
std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported);

}  // namespace syncopate
