#include "strategies/collective/collectives.h"

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// NCCL sums gradients, which never reach the host (strategies/join_replicas.h); whatever else
// travels between replicas does so as without it.
std::vector<std::unique_ptr<Collective>> make_beside_nccl(const CollectiveOptions& options) {
  CollectiveOptions host = options;
  host.name = "auto";
  return make_collectives(host);
}

constexpr std::array kCollectives = {
    CollectiveRow{"local", "threads of one process, in their own memory", make_local_collectives},
    CollectiveRow{"ring", "processes: shared memory on one host, else a ring over TCP",
                  make_ring_collectives},
    CollectiveRow{"mpi", "MPI's all-reduce, under mpirun or launch; needs a build with MPI",
                  make_mpi_collectives},
    CollectiveRow{"nccl", "NVIDIA GPUs, each replica one of its own", make_beside_nccl},
};

}  // namespace

std::span<const CollectiveRow> collectives() noexcept { return kCollectives; }

std::vector<std::unique_ptr<Collective>> make_collectives(const CollectiveOptions& options) {
  std::string_view name = options.name;
  if (name == "auto") {
    const bool alone = options.membership == nullptr || options.membership->members().size() == 1;
    name = alone ? "local" : "ring";
  }
  std::string known = "auto";
  for (const CollectiveRow& row : kCollectives) {
    if (row.name == name) return row.make(options);
    known += ", " + std::string(row.name);
  }
  throw UsageError("--collective " + options.name + ": no such collective; choose one of " + known);
}

}  // namespace syncopate
