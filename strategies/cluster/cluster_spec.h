// Describes a distributed job as one of its tasks sees it: how many workers and servers there are,
// which of them this process is, and where the tasks meet. The resolvers (resolvers/resolvers.h)
// fill it in from flags and from the environment; strategies and the worker only read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ps/net/endpoint.h"

namespace syncopate {

enum class Role : std::uint8_t { kWorker, kServer, kEvaluator };
std::string_view name(Role role) noexcept;  // the role as text, such as "worker"

// The node that a task runs on, as the launcher names it.
struct Place {
  std::string node;
  int local_rank = 0;  // the task's number among the tasks on that node
  // True if the launcher's variables do not tell which node runs this task; `node` and `local_rank`
  // are then a guess, the most usual ones.
  bool is_assumed = false;
  bool operator==(const Place& other) const {
    return node == other.node && local_rank == other.local_rank;
  }
};

// Returns the place as text, such as "node n1, local rank 0".
std::string describe(const Place& place);

// The address at which the tasks of a job meet, and how that address was found. Rank 0 listens
// there; in a job with parameter servers, server 0 listens there with its control socket.
struct Rendezvous {
  // The endpoint is absent when the job has one task, or when MPI transports the address later.
  std::optional<Endpoint> endpoint;
  // The resolver computed host and port from node names and job numbers, without a choice of the
  // user's.
  bool is_derived = false;
  // The rendezvous port that the resolver computed from job numbers; 0 if it computed none. It may
  // be known when the host is not.
  std::uint16_t derived_port = 0;
  // The address to connect to when endpoint->host cannot be looked up; "" when none is known.
  // Unless is_fallback_certain, it may be the address of another machine.
  std::string fallback_host;
  bool is_fallback_certain = false;
  // A socket that already listens at the endpoint, inherited from `syncopate launch` or opened by
  // prepare_rendezvous(); -1 when there is none.
  int descriptor = -1;
  // An event of `syncopate launch` that a task sets when the tasks have met; -1 when there is none.
  int met_descriptor = -1;
};

struct ClusterSpec {
  std::string source = "none";  // the resolver that was chosen; "none" for a single process
  Role role = Role::kWorker;
  int index = 0;        // number among the tasks of its role; for workers this is the rank
  int world_size = 1;   // number of workers
  int num_servers = 0;  // number of parameter servers
  int local_rank = 0;   // number among the tasks on this host; meaningful if has_local_rank
  int local_size = 1;   // number of tasks on this host; meaningful if has_local_rank
  bool has_local_rank = false;
  // The largest number of tasks of this role on any one node; 0 when only local_size is known.
  int most_local_tasks = 0;
  bool is_bound = false;  // this task is bound to CPUs that no other task uses
  int num_cpus = 0;       // CPUs that the launcher gave this task; 0 when unknown
  std::string node;       // the node of this task, as the launcher names it; "" when unknown
  // Node and local rank of all workers and servers by index, if the launcher tells them. When the
  // tasks meet, these places are compared with the place that each task reports.
  std::vector<Place> worker_places;
  std::vector<Place> server_places;
  // The GPUs of this task, as indices into the list of GPUs that are visible to it.
  std::vector<int> gpus;
  Rendezvous rendezvous;
  std::string nonce;                // a secret of the job's tasks; "": any task is let in
  bool is_nonce_guessable = false;  // the nonce tells jobs apart but is no secret
  std::string nonce_file;  // where tasks without a nonce share one (nonce_file.h); "": nowhere
  bool restarts = false;   // a failed task may be started again while the others continue
  std::vector<int> late_workers;   // workers that join after the start, in ascending order
  std::vector<Endpoint> workers;   // addresses of all workers, if the source lists them
  std::vector<Endpoint> servers;   // addresses of all servers, if the source lists them
  std::vector<std::string> notes;  // why other descriptions of the cluster were ignored

  bool is_chief() const noexcept { return role == Role::kWorker && index == 0; }
  // Whether this task listens at the rendezvous and the other tasks connect to it.
  bool hosts_rendezvous() const noexcept {
    return index == 0 && role == (num_servers > 0 ? Role::kServer : Role::kWorker);
  }
};

// Returns the task as text, such as "rank 1 of 2" or "server 0 of 2".
std::string place_in_job(const ClusterSpec& spec);

// Tells `syncopate launch`, if it started this task, that the tasks have met: from now on they
// detect the failure of a task themselves.
void report_meeting(const ClusterSpec& spec) noexcept;

// Returns how many files a task of the job has open, for models/base/open_files.h; 0 for a job of
// one task.
std::int64_t needed_open_files(const ClusterSpec& spec);

// Compares the place that a task reports with the place that the launcher's variables give it.
// Returns an error message with advice when they differ, "" when they agree or are unknown.
std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported);

// Returns the cluster spec as one JSON object, which `syncopate cluster` prints.
std::string to_json(const ClusterSpec& spec);

// Returns this task's TF_CONFIG on one line: TensorFlow's JSON that lists workers and servers and
// names this task. On each node, ports count up from port_base by local rank; 0 uses the derived
// rendezvous port. Worker 0 is the chief. Throws UsageError if the other tasks' nodes are unknown.
std::string to_tf_config(const ClusterSpec& spec, int port_base);

}  // namespace syncopate
