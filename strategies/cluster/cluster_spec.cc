#include "strategies/cluster/cluster_spec.h"

#include <array>
#include <nlohmann/json.hpp>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers.h"

namespace syncopate {
namespace {

constexpr std::array kResolvers = {
    ResolverRow{"flags", "--rank, --world-size and --rendezvous", resolve_flags},
    ResolverRow{"launch", "syncopate launch: SYNCOPATE_*", resolve_launch},
    ResolverRow{"torchrun", "RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
                resolve_torchrun},
    ResolverRow{"TF_CONFIG", "TensorFlow's JSON of cluster and task", resolve_tf_config},
    ResolverRow{"Open MPI", "mpirun: OMPI_COMM_WORLD_*", resolve_open_mpi},
    ResolverRow{"Slurm", "srun: noticed, not read yet", resolve_slurm},
};

// "rank 1 of 2", "server 0 of 2"
std::string place(const ClusterSpec& spec) {
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

// Every task would believe that it is alone, train by itself and write over the others' files. What
// the user says by flags is not silent.
bool is_silent_shrink(const ClusterSpec& winner, const ClusterSpec& loser) {
  return winner.source != "flags" && winner.world_size + winner.num_servers == 1 &&
         loser.world_size > 1;
}

void judge_loser(const ClusterSpec& winner, const ClusterSpec& loser, Notes& notes) {
  if (is_silent_shrink(winner, loser)) {
    throw UsageError(winner.source + " says that this task is alone, but " + loser.source +
                     " says that it is " + place(loser) +
                     ": each task would train by itself; unset the variables of the one that is "
                     "wrong, or give --rank, --world-size and --rendezvous");
  }
  const bool agrees = place(winner) == place(loser);
  notes.push_back(loser.source + ": outranked by " + winner.source + "; it says " +
                  (agrees ? "the same, " : "") + place(loser));
}

nlohmann::ordered_json addresses(const std::vector<Endpoint>& endpoints) {
  auto list = nlohmann::ordered_json::array();
  for (const Endpoint& endpoint : endpoints) list.push_back(to_string(endpoint));
  return list;
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
  ClusterSpec spec = winner.value_or(ClusterSpec{});
  spec.notes = std::move(notes);
  return spec;
}

std::string to_json(const ClusterSpec& spec) {
  using Json = nlohmann::ordered_json;
  const Json rank = spec.role == Role::kWorker ? Json(spec.index) : Json(nullptr);
  const Json json = {{"source", spec.source},
                     {"role", name(spec.role)},
                     {"index", spec.index},
                     {"rank", rank},
                     {"world_size", spec.world_size},
                     {"num_servers", spec.num_servers},
                     {"local_rank", spec.local_rank},
                     {"local_size", spec.local_size},
                     {"chief", spec.is_chief()},
                     {"workers", addresses(spec.workers)},
                     {"servers", addresses(spec.servers)},
                     {"device", "cpu"},
                     {"rendezvous", spec.rendezvous ? Json(to_string(*spec.rendezvous)) : Json()},
                     {"notes", spec.notes}};
  // Variables may hold any bytes: what is no UTF-8 is shown as such, not refused.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syncopate
