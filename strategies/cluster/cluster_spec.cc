#include "strategies/cluster/cluster_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/visible_gpus.h"

namespace syncopate {
namespace {

constexpr std::array kResolvers = {
    ResolverRow{"flags", "--rank, --world-size and --rendezvous", resolve_flags},
    ResolverRow{"launch", "syncopate launch: SYNCOPATE_*", resolve_launch},
    ResolverRow{"torchrun", "RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
                resolve_torchrun},
    ResolverRow{"TF_CONFIG", "TensorFlow's JSON of cluster and task", resolve_tf_config},
    ResolverRow{"Open MPI", "mpirun: OMPI_COMM_WORLD_*", resolve_open_mpi},
    ResolverRow{"PMI", "other MPIs' mpiexec: PMI_RANK, PMI_SIZE", resolve_pmi},
    ResolverRow{"MVAPICH", "mpirun_rsh: MV2_COMM_WORLD_*", resolve_mvapich},
    ResolverRow{"JSM", "jsrun: JSM_NAMESPACE_*", resolve_jsm},
    ResolverRow{"Slurm", "srun: SLURM_PROCID, SLURM_STEP_*, heterogeneous jobs too", resolve_slurm},
    ResolverRow{"Horovod", "horovodrun: HOROVOD_RANK, HOROVOD_SIZE", resolve_horovod},
};

// Every task would believe that it is alone, train by itself and write over the others' files. What
// the user says by flags is not silent.
bool is_silent_shrink(const ClusterSpec& winner, const ClusterSpec& loser) {
  return winner.source != "flags" && winner.world_size + winner.num_servers == 1 &&
         loser.world_size + loser.num_servers > 1;
}

bool is_same_task(const ClusterSpec& one, const ClusterSpec& other) {
  return one.role == other.role && one.index == other.index && one.world_size == other.world_size &&
         one.num_servers == other.num_servers;
}

// Where on its host the task is, of a winner that does not tell (flags, TF_CONFIG) from a loser
// that does: without it all tasks of a node would take the same GPUs.
bool take_local_place(ClusterSpec& winner, const ClusterSpec& loser) {
  if (winner.is_local_told || !loser.is_local_told || !is_same_task(winner, loser)) return false;
  winner.node = loser.node;
  winner.local_rank = loser.local_rank;
  winner.local_size = loser.local_size;
  winner.most_local_tasks = loser.most_local_tasks;
  winner.num_cpus = loser.num_cpus;
  winner.is_local_told = true;
  return true;
}

void judge_loser(ClusterSpec& winner, const ClusterSpec& loser, Notes& notes) {
  if (is_silent_shrink(winner, loser)) {
    throw UsageError(winner.source + " says that this task is alone, but " + loser.source +
                     " says that it is " + place_in_job(loser) +
                     ": each task would train by itself; unset the variables of the one that is "
                     "wrong, or give --rank, --world-size and --rendezvous");
  }
  const bool agrees = place_in_job(winner) == place_in_job(loser);
  std::string note = loser.source + ": outranked by " + winner.source + "; it says " +
                     (agrees ? "the same, " : "") + place_in_job(loser);
  if (take_local_place(winner, loser)) {
    note += ", and tells that it is task " + std::to_string(loser.local_rank) + " of " +
            std::to_string(loser.local_size) + " on its host";
  }
  notes.push_back(std::move(note));
}

// By the environment. Where tasks meet, they compare what they see, and that counts.
void find_gpus(const Environment& environment, ClusterSpec& spec, Notes& notes) {
  const int tasks = std::max(spec.local_size, spec.most_local_tasks);
  const bool is_bound_to_all = spec.source == "Slurm" && sees_part_of_node(environment);
  spec.gpus = is_bound_to_all ? choose_gpus(environment, 0, 1)
                              : choose_gpus(environment, spec.local_rank, tasks);
  const auto visible = visible_gpus(environment);
  const std::size_t count = visible ? visible->size() : 0;
  if (is_bound_to_all || count < 2 || std::cmp_greater_equal(count, tasks)) return;
  if (spec.gpus.size() == count) return;
  notes.push_back("CUDA_VISIBLE_DEVICES shows " + std::to_string(count) + " GPUs to each of " +
                  std::to_string(tasks) + " tasks of a node: if all see the same ones, they are " +
                  "taken in turn, cuda:" + std::to_string(spec.gpus.front()) + " by this one");
}

}  // namespace

std::string_view name(Role role) noexcept {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "server";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::span<const ResolverRow> resolvers() noexcept { return kResolvers; }

ClusterSpec resolve_cluster(const ClusterFlags& flags, const Environment& environment) {
  std::optional<ClusterSpec> winner;
  Notes notes;
  for (const ResolverRow& row : resolvers()) {
    std::optional<ClusterSpec> found;
    try {
      found = row.resolve(flags, environment, notes);
    } catch (const UsageError& error) {
      if (!winner) throw;
      notes.push_back(std::string(row.name) + ": outranked by " + winner->source +
                      ", and wrong: " + error.what());
    }
    if (!found) continue;
    found->source = row.name;
    if (winner) {
      judge_loser(*winner, *found, notes);
    } else {
      winner = std::move(found);
    }
  }
  if (!winner) require_all_or_none(flags);
  ClusterSpec spec = std::move(winner).value_or(ClusterSpec{});
  find_gpus(environment, spec, notes);
  complete(spec, flags);
  spec.notes = std::move(notes);
  return spec;
}

std::string place_in_job(const ClusterSpec& spec) {
  const std::string index = std::to_string(spec.index);
  switch (spec.role) {
    case Role::kWorker:
      return "rank " + index + " of " + std::to_string(spec.world_size);
    case Role::kServer:
      return "server " + index + " of " + std::to_string(spec.num_servers);
    case Role::kEvaluator:
      return "evaluator " + index;
  }
  return "";
}

std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported) {
  const std::vector<Place>& places =
      role == Role::kServer ? spec.server_places : spec.worker_places;
  if (static_cast<std::size_t>(index) >= places.size() || reported.node.empty()) return "";
  const Place& expected = places[static_cast<std::size_t>(index)];
  if (expected == reported || expected.is_assumed) return "";
  return (role == Role::kServer ? "server " : "rank ") + std::to_string(index) + " runs on " +
         describe(reported) + ", but by " + spec.source + "'s variables it is on " +
         describe(expected) +
         "; start the tasks with srun --distribution=block, or give --rendezvous HOST, the host of "
         "rank 0 or, where there are servers, of server 0";
}

}  // namespace syncopate
