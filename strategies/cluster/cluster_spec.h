// The description of a distributed job, as seen by one task: how many workers and servers the job
// has, which task this process is, and where the tasks meet. The resolvers (resolvers/resolvers.h)
// fill it in from flags and the environment; strategies and the worker only read it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"
#include "ps/net/endpoint.h"

namespace syncopate {

enum class Role : std::uint8_t { kWorker, kServer, kEvaluator };
constexpr auto named_values(Role) {
  return std::array{Named{"worker", Role::kWorker}, Named{"server", Role::kServer},
                    Named{"evaluator", Role::kEvaluator}};
}

// Where a task runs: the node, as the launcher names it, and the task's number on this node.
struct Place {
  std::string node;
  int local_rank = 0;  // the task's number among the tasks on that node
  // True if the launcher's variables do not say where the task runs. `node` and `local_rank` are
  // then a guess, based on the most usual placement.
  bool is_assumed = false;
  bool operator==(const Place& other) const {
    return node == other.node && local_rank == other.local_rank;
  }
};

// Returns the place as text, such as "node n1, local rank 0".
std::string describe(const Place& place);

// The address at which the tasks of a job meet, and how the resolver found it. Rank 0 listens at
// this address; in a job with parameter servers, server 0 does, with its control socket.
struct Rendezvous {
  // Absent if the job has one task, or if MPI will broadcast the address later.
  std::optional<Endpoint> endpoint;
  // True if the resolver computed host and port from node names and job numbers, because the user
  // gave no rendezvous.
  bool is_derived = false;
  // The port that the resolver computed from job numbers; 0 if it computed none. The port may be
  // known even if the host is not.
  std::uint16_t derived_port = 0;
  // The address that replaces endpoint->host if the host cannot be looked up; "" if none is known.
  // Unless is_fallback_certain, the address may belong to another machine than the host name.
  std::string fallback_host;
  bool is_fallback_certain = false;
  // A socket that already listens at the endpoint, inherited from `syncopate launch` or opened by
  // prepare_rendezvous(); -1 if there is none.
  int descriptor = -1;
  // A descriptor for report_meeting(): a task that writes to it reports to `syncopate launch` that
  // the tasks have met. -1 if there is none.
  int met_descriptor = -1;
};

struct ClusterSpec {
  std::string source = "none";  // the resolver that was chosen; "none" for a single process
  Role role = Role::kWorker;
  int index = 0;        // number of this task among the tasks of its role; the rank of a worker
  int world_size = 1;   // number of workers
  int num_servers = 0;  // number of parameter servers
  int local_rank = 0;   // number of this task among the tasks on this host; valid if has_local_rank
  int local_size = 1;   // number of tasks on this host; valid if has_local_rank
  bool has_local_rank = false;
  // The largest number of tasks of this role on any node; 0 if only local_size is known.
  int most_local_tasks = 0;
  bool is_bound = false;  // this task is bound to CPUs that no other task uses
  int num_cpus = 0;       // number of CPUs that the launcher gave this task; 0 if unknown
  std::string node;       // the node of this task, as the launcher names it; "" if unknown
  // The places of all workers and of all servers, by index; empty if the launcher does not say
  // them. When the tasks meet, these places are compared with the place that each task reports.
  std::vector<Place> worker_places;
  std::vector<Place> server_places;
  // The GPUs of this task, as indices into the list of GPUs that are visible to it.
  std::vector<int> gpus;
  Rendezvous rendezvous;
  std::string nonce;                // a secret shared by the job's tasks; if "", any task can join
  bool is_nonce_guessable = false;  // the nonce distinguishes jobs but is not secret
  // File through which the tasks share a nonce if the launcher gives none (NonceFile); "" for no
  // file.
  std::string nonce_file;
  bool restarts = false;           // a failed task may be started again while the others continue
  std::vector<int> late_workers;   // workers that join after the start, in ascending order
  std::vector<Endpoint> workers;   // addresses of all workers, if the source lists them
  std::vector<Endpoint> servers;   // addresses of all servers, if the source lists them
  std::vector<std::string> notes;  // why other descriptions of the cluster were ignored

  bool is_chief() const noexcept { return role == Role::kWorker && index == 0; }
  // Returns whether this task listens at the rendezvous, where the other tasks connect.
  bool hosts_rendezvous() const noexcept {
    return index == 0 && role == (num_servers > 0 ? Role::kServer : Role::kWorker);
  }
};

// Returns the task as text, such as "rank 1 of 2" or "server 0 of 2".
std::string place_in_job(const ClusterSpec& spec);

// Reports to `syncopate launch`, if it started this task, that the tasks have met. From then on the
// tasks themselves detect the failure of a task.
void report_meeting(const ClusterSpec& spec) noexcept;

// Returns how many open files a task of the job needs at most, for models/base/open_files.h; 0 for
// a job with one task.
std::int64_t needed_open_files(const ClusterSpec& spec);

// Compares the place that a task reports with its place in the launcher's variables. Returns an
// error message with advice if they differ; "" if they agree or if a place is unknown.
std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported);

// Returns the cluster spec as one JSON object, which `syncopate cluster` prints.
std::string to_json(const ClusterSpec& spec);

// Returns the value of TF_CONFIG for this task, on one line: TensorFlow's JSON that lists workers
// and servers and says which task this is. Worker 0 is the chief. If the spec does not list the
// workers' addresses, a task's port is `port_base` plus the task's local rank. `port_base` 0 stands
// for the derived rendezvous port. Throws UsageError if the other tasks' nodes are unknown.
std::string to_tf_config(const ClusterSpec& spec, int port_base);

}  // namespace syncopate
