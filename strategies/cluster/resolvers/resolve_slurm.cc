// Resolves a task that srun started: its role, its index, and the rendezvous of the job.
// slurm_step.h reads the step's variables.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/slurm_step.h"

namespace syncopate {
namespace {

// The servers of a step: ranks [begin, end) are parameter servers, all others are workers.
struct Servers {
  int begin = 0;
  int end = 0;
  int count() const { return end - begin; }
  bool contains(int rank) const { return begin <= rank && rank < end; }
};

// Returns the role that the task's command line states, else that in the variable SYNCOPATE_ROLE.
std::optional<Role> stated_role(const ClusterFlags& flags, const Environment& environment) {
  if (flags.role) return flags.role;
  const auto text = filled(environment, "SYNCOPATE_ROLE");
  if (!text) return std::nullopt;
  for (const Role role : {Role::kWorker, Role::kServer}) {
    if (*text == name(role)) return role;
  }
  throw UsageError("SYNCOPATE_ROLE=" + *text + ": under srun expected worker or server");
}

Servers first_tasks(const SlurmStep& step, int count) {
  const int servers = number_within("--servers", std::to_string(count), 0, kMostTasks);
  if (servers < step.tasks) return {0, servers};
  throw UsageError(
      fmt::format("--servers {}: Slurm's step {} has {} tasks, and at least one must train; start "
                  "more, or give fewer servers",
                  servers, step.id, step.tasks));
}

Servers component(const SlurmStep& step, int group) {
  const auto sizes = step.group_sizes.begin();
  int begin = 0;
  for (int g = 0; g < group; ++g) begin += step.group_sizes[static_cast<std::size_t>(g)];
  return {begin, begin + *std::next(sizes, group)};
}

// Returns the servers of a heterogeneous job: all tasks of its first component. In a job of two
// components, a task that states its role decides which component has the servers.
Servers serving_component(const SlurmStep& step, std::optional<Role> stated) {
  const bool is_pair = step.group_sizes.size() == 2;
  if (is_pair && stated)
    return component(step, *stated == Role::kServer ? step.group : 1 - step.group);
  return component(step, 0);
}

Servers find_servers(const SlurmStep& step, const ClusterFlags& flags, std::optional<Role> stated) {
  if (flags.servers) return first_tasks(step, *flags.servers);
  if (flags.wants_servers == false) return {};
  if (step.group_sizes.size() < 2) {
    if (stated != Role::kServer) return {};
    // In `srun SERVERS : WORKERS` of a job that is not heterogeneous, no variable tells how many
    // tasks belong to each side.
    throw UsageError(fmt::format(
        "this task is a server, but the other servers are unknown: Slurm's step {} is not of "
        "a heterogeneous job (#SBATCH hetjob), whose components show them; give all its "
        "tasks --servers M, on both sides of srun SERVERS : WORKERS: the first M serve",
        step.id));
  }
  return serving_component(step, stated);
}

void require_stated(const SlurmStep& step, const Servers& servers, std::optional<Role> stated) {
  if (!stated || (*stated == Role::kServer) == servers.contains(step.rank)) return;
  if (servers.count() == 0) {
    throw UsageError(
        "this task is started as a server, but there are none under this strategy, or by --servers "
        "0; choose --strategy parameter-server, or leave --role and SYNCOPATE_ROLE out");
  }
  throw UsageError(
      fmt::format("this task is started as a {}, but ranks {} to {} of Slurm's step {} are the "
                  "servers, and it is rank {}; put the servers first: srun SERVERS : WORKERS",
                  name(*stated), servers.begin, servers.end - 1, step.id, step.rank));
}

void require_workers(const SlurmStep& step, const ClusterFlags& flags, const Servers& servers) {
  if (!flags.world_size || *flags.world_size == step.tasks - servers.count()) return;
  throw UsageError(fmt::format(
      "{} servers and {} workers make {} tasks, but Slurm's step {} has {}; change srun's "
      "--ntasks, or the number of workers or servers",
      servers.count(), *flags.world_size, servers.count() + *flags.world_size, step.id,
      step.tasks));
}

// Returns the places of the servers if `serving` is set, else the places of the workers.
std::vector<Place> places_of(const SlurmStep& step, const Servers& servers, bool serving) {
  std::vector<Place> places;
  for (int rank = 0; rank < static_cast<int>(step.places.size()); ++rank) {
    if (servers.contains(rank) == serving) {
      places.push_back(step.places[static_cast<std::size_t>(rank)]);
    }
  }
  return places;
}

// Returns the largest number of tasks on one node, among the tasks with this one's role and
// component. Tasks of other roles and components have other nodes or other devices.
int most_local_tasks(const SlurmStep& step, const Servers& servers) {
  const Servers own = component(step, step.group);
  int most = 0;
  for (int rank = own.begin; rank < std::min(own.end, static_cast<int>(step.places.size()));
       ++rank) {
    if (servers.contains(rank) != servers.contains(step.rank)) continue;
    most = std::max(most, step.places[static_cast<std::size_t>(rank)].local_rank + 1);
  }
  return most;
}

// Adds a note about Slurm variables outside of a step. A task rank without the step's variables
// means that these were dropped on the way, for example by a container.
void note_absent_step(const Environment& environment, Notes& notes) {
  const auto rank = filled(environment, "SLURM_PROCID");
  if (filled(environment, "SLURM_JOB_ID") && rank.value_or("0") == "0") {
    notes.emplace_back(
        "Slurm: inside a job but not in a step, so this task is started once and alone; start it "
        "with srun");
  } else if (rank) {
    notes.push_back(
        fmt::format("Slurm: SLURM_PROCID={} is set, but neither SLURM_STEP_ID nor "
                    "SLURM_STEP_NUM_TASKS is: not running inside a Slurm step? Start it with srun, "
                    "and let its variables through",
                    *rank));
  }
}

// Sets the rendezvous to the node of the first server or worker, with the step's port.
void derive_rendezvous(const SlurmStep& step, ClusterSpec& spec, Notes& notes) {
  spec.rendezvous.is_derived = true;
  spec.rendezvous.derived_port = step.port;
  const std::vector<Place>& hosts = spec.num_servers > 0 ? spec.server_places : spec.worker_places;
  if (hosts.empty()) {
    notes.push_back(fmt::format(
        "Slurm: SLURM_DISTRIBUTION={} does not determine where the first task runs; give "
        "--rendezvous HOST, or start with srun --distribution=block",
        step.distribution));
    return;
  }
  spec.rendezvous.endpoint = Endpoint{hosts.front().node, step.port};
  spec.rendezvous.fallback_host = step.launch_host;
  spec.rendezvous.is_fallback_certain = step.launch_node == hosts.front().node;
}

}  // namespace

std::optional<ClusterSpec> resolve_slurm(const ClusterFlags& flags, const Environment& environment,
                                         Notes& notes) {
  if (!is_in_slurm_step(environment)) {
    note_absent_step(environment, notes);
    return std::nullopt;
  }
  const SlurmStep step = read_slurm_step(environment);
  const std::optional<Role> stated = stated_role(flags, environment);
  const Servers servers = find_servers(step, flags, stated);
  require_stated(step, servers, stated);
  require_workers(step, flags, servers);

  ClusterSpec spec;
  spec.num_servers = servers.count();
  spec.world_size = step.tasks - servers.count();
  if (servers.contains(step.rank)) {
    spec.role = Role::kServer;
    spec.index = step.rank - servers.begin;
  } else {
    spec.index = step.rank < servers.begin ? step.rank : step.rank - servers.count();
  }
  spec.node = step.place.node;
  spec.has_local_rank = true;
  spec.local_rank = step.place.local_rank;
  spec.most_local_tasks = most_local_tasks(step, servers);
  spec.local_size = std::max(step.local_tasks, step.place.local_rank + 1);
  spec.num_cpus = number_of(environment, "SLURM_CPUS_PER_TASK", 1, kMostTasks, 0);
  spec.worker_places = places_of(step, servers, false);
  spec.server_places = places_of(step, servers, true);
  if (step.tasks > 1) {
    spec.nonce_file = step.nonce_file;
    derive_rendezvous(step, spec, notes);
  }
  if (servers.count() > 0 && !flags.servers && !stated && !flags.wants_servers) {
    notes.emplace_back(
        "Slurm: the first component of this heterogeneous step is taken for servers; under a "
        "strategy without servers all its tasks are workers");
  }
  return spec;
}

}  // namespace syncopate
