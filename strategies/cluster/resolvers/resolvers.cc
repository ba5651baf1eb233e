#include "strategies/cluster/resolvers/resolvers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/visible_gpus.h"

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

// Without an error, every task would believe that it is alone, train by itself and overwrite the
// files of the others. A user who gives flags has decided so.
bool is_silent_shrink(const ClusterSpec& winner, const ClusterSpec& loser) {
  return winner.source != "flags" && winner.world_size + winner.num_servers == 1 &&
         loser.world_size + loser.num_servers > 1;
}

bool is_same_task(const ClusterSpec& one, const ClusterSpec& other) {
  return one.role == other.role && one.index == other.index && one.world_size == other.world_size &&
         one.num_servers == other.num_servers;
}

// Flags and TF_CONFIG do not tell the task's place on its host. Without it, all tasks of a node
// would use the same GPUs, so it is taken from a lower source that tells it.
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
    throw UsageError(
        fmt::format("{} says that this task is alone, but {} says that it is {}: each task would "
                    "train by itself; unset the variables of the one that is wrong, or give "
                    "--rank, --world-size and --rendezvous",
                    winner.source, loser.source, place_in_job(loser)));
  }
  const bool agrees = place_in_job(winner) == place_in_job(loser);
  std::string note = fmt::format("{}: outranked by {}; it says {}{}", loser.source, winner.source,
                                 agrees ? "the same, " : "", place_in_job(loser));
  if (take_local_place(winner, loser)) {
    note += fmt::format(", and tells that it is task {} of {} on its host", loser.local_rank,
                        loser.local_size);
  }
  notes.push_back(std::move(note));
}

// Chooses GPUs by the environment alone. When the tasks meet, they compare which GPUs they see and
// choose again by that.
void find_gpus(const Environment& environment, ClusterSpec& spec, Notes& notes) {
  const int tasks = std::max(spec.local_size, spec.most_local_tasks);
  const bool is_bound_to_all = spec.source == "Slurm" && sees_part_of_node(environment);
  spec.gpus = is_bound_to_all ? choose_gpus(environment, 0, 1)
                              : choose_gpus(environment, spec.local_rank, tasks);
  const auto visible = visible_gpus(environment);
  const std::size_t count = visible ? visible->size() : 0;
  if (is_bound_to_all || count < 2 || std::cmp_greater_equal(count, tasks)) return;
  if (spec.gpus.size() == count) return;
  notes.push_back(fmt::format(
      "CUDA_VISIBLE_DEVICES shows {} GPUs to each of {} tasks of a node: if all see the same ones, "
      "they are taken in turn, cuda:{} by this one",
      count, tasks, spec.gpus.front()));
}

}  // namespace

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
      notes.push_back(fmt::format("{}: outranked by {}, and wrong: {}", row.name, winner->source,
                                  error.what()));
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

}  // namespace syncopate
