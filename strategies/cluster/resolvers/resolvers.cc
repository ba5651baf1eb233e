#include "strategies/cluster/resolvers/resolvers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
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
    ResolverRow{"PyTorch", "PyTorchJob, scripts: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
                resolve_pytorch},
};

// True if the chosen source describes a job of one task and another source one of several. This is
// an error, because every task would train alone and overwrite the files of the others. Flags are
// an explicit choice, so they may describe one task.
bool is_silent_shrink(const ClusterSpec& winner, const ClusterSpec& other) {
  return winner.source != "flags" && winner.world_size + winner.num_servers == 1 &&
         other.world_size + other.num_servers > 1;
}

bool is_same_task(const ClusterSpec& one, const ClusterSpec& other) {
  return one.role == other.role && one.index == other.index && one.world_size == other.world_size &&
         one.num_servers == other.num_servers;
}

// Takes the task's local rank from a later source if the chosen source, such as TF_CONFIG, does not
// tell it. Without a local rank, all tasks of a node would use the same GPUs.
bool take_local_place(ClusterSpec& winner, const ClusterSpec& other) {
  if (winner.has_local_rank || !other.has_local_rank || !is_same_task(winner, other)) return false;
  winner.node = other.node;
  winner.local_rank = other.local_rank;
  winner.local_size = other.local_size;
  winner.most_local_tasks = other.most_local_tasks;
  winner.num_cpus = other.num_cpus;
  winner.has_local_rank = true;
  return true;
}

void check_other_source(ClusterSpec& winner, const ClusterSpec& other, Notes& notes) {
  if (is_silent_shrink(winner, other)) {
    throw UsageError(
        fmt::format("by {} this task is alone, but by {} it is {}: each task would "
                    "train by itself; unset the variables of the one that is wrong, or give "
                    "--rank, --world-size and --rendezvous",
                    winner.source, other.source, place_in_job(other)));
  }
  const bool agrees = place_in_job(winner) == place_in_job(other);
  std::string note = fmt::format("{}: outranked by {}; {} {}", other.source, winner.source,
                                 agrees ? "it agrees:" : "it gives", place_in_job(other));
  if (take_local_place(winner, other)) {
    note += fmt::format(", and adds that it is task {} of {} on its host", other.local_rank,
                        other.local_size);
  }
  notes.push_back(std::move(note));
}

// Chooses GPUs by the environment alone. When the tasks meet, they compare which GPUs they see and
// choose again by what they see.
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

bool names_port(const std::string& rendezvous) {
  return rendezvous.find(':') != std::string::npos && !rendezvous.ends_with(']');
}

void replace_rendezvous(ClusterSpec& spec, const std::string& text) {
  const std::uint16_t derived_port = spec.rendezvous.derived_port;
  const bool is_complete = names_port(text) || derived_port == 0;
  spec.rendezvous = {
      .endpoint = parse_endpoint(is_complete ? text : fmt::format("{}:{}", text, derived_port),
                                 "--rendezvous"),
      .derived_port = derived_port};
  // The places of all tasks are needed only to check a rendezvous that follows from the scheduler's
  // node names. --rendezvous replaces it.
  spec.worker_places.clear();
  spec.server_places.clear();
}

void require_same(const char* flag, const std::optional<int>& given, int found,
                  const std::string& source) {
  if (!given || *given == found) return;
  throw UsageError(
      fmt::format("{} {}: {} gives {}; leave it out, or give all of --rank, --world-size and "
                  "--rendezvous",
                  flag, *given, source, found));
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
      check_other_source(*winner, *found, notes);
    } else {
      winner = std::move(found);
    }
  }
  if (!winner) require_all_or_none(flags);
  ClusterSpec spec = std::move(winner).value_or(ClusterSpec{});
  find_gpus(environment, spec, notes);
  complete(spec, flags);
  if (spec.nonce.empty()) spec.nonce = given_nonce(flags.nonce, environment);
  spec.notes = std::move(notes);
  return spec;
}

void require_all_or_none(const ClusterFlags& flags) {
  const bool has_rendezvous = !flags.rendezvous.empty();
  if (!flags.rank && !flags.world_size && !flags.servers && !has_rendezvous &&
      flags.nonce.empty()) {
    return;
  }
  const int servers = flags.servers.value_or(0);
  std::string missing;
  const auto require = [&](bool given, const char* flag) {
    if (!given) missing += (missing.empty() ? "" : " and ") + std::string(flag);
  };
  require(flags.rank.has_value(), "--rank");
  require(flags.world_size.has_value(), "--world-size");
  require(has_rendezvous || (flags.world_size == 1 && servers == 0), "--rendezvous HOST:PORT");
  if (!missing.empty()) {
    // Job scripts give --world-size so that a task that lost its launcher's variables stops here
    // instead of training alone.
    const bool is_lost = flags.world_size && !flags.rank;
    throw UsageError(
        fmt::format("--rank, --world-size and --rendezvous belong together: missing {}; give all "
                    "three, or none under launch, srun, mpirun or torchrun{}",
                    missing,
                    is_lost ? " (no variable of a launcher gives this task's rank: not started "
                              "by srun or mpirun? A container drops their variables under "
                              "--cleanenv and --containall)"
                            : ""));
  }
}

std::optional<ClusterSpec> resolve_flags(const ClusterFlags& flags, const Environment& environment,
                                         Notes& /*unused*/) {
  if (!flags.rank) return std::nullopt;
  const int servers =
      flags.servers ? number_within("--servers", std::to_string(*flags.servers), 0, kMostTasks) : 0;
  require_all_or_none(flags);
  ClusterSpec spec;
  spec.world_size = number_within("--world-size", std::to_string(*flags.world_size), 1, kMostTasks);
  spec.index = number_within("--rank", std::to_string(*flags.rank), 0, kMostTasks);
  require_below("--rank", spec.index, "--world-size", spec.world_size);
  spec.num_servers = servers;
  spec.nonce = given_nonce(flags.nonce, environment);
  // A task that is started again finds its job by the nonce, so the nonce must be given.
  spec.restarts = servers > 0 && !spec.nonce.empty();
  if (!flags.rendezvous.empty())
    spec.rendezvous.endpoint = parse_endpoint(flags.rendezvous, "--rendezvous");
  return spec;
}

void complete(ClusterSpec& spec, const ClusterFlags& flags) {
  if (flags.rank || spec.source == "none") return;
  require_same("--world-size", flags.world_size, spec.world_size, spec.source);
  require_same("--servers", flags.servers, spec.num_servers, spec.source);
  if (flags.role && *flags.role != spec.role) {
    throw UsageError(
        fmt::format("this task is started as a {}, but by {} it is {}; start it as that, or give "
                    "--rank, --world-size and --rendezvous",
                    name(*flags.role), spec.source, place_in_job(spec)));
  }
  if (!flags.nonce.empty()) {
    spec.nonce = flags.nonce;
    spec.is_nonce_guessable = false;
  }
  if (!flags.rendezvous.empty()) replace_rendezvous(spec, flags.rendezvous);
}

}  // namespace syncopate
