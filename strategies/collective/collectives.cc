#include "strategies/collective/collectives.h"

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

std::vector<std::unique_ptr<Collective>> nccl_is_absent(const CollectiveOptions& /*options*/) {
  throw UnavailableError(
      "--collective nccl: this build has no CUDA module (libsyncopate_cuda.so), which brings NCCL; "
      "choose ring, mpi or local");
}

constexpr std::array kCollectives = {
    CollectiveRow{"local", "threads of one process, in their own memory", make_local_collectives},
    CollectiveRow{"ring", "processes: shared memory on one host, else a ring over TCP",
                  make_ring_collectives},
    CollectiveRow{"mpi", "MPI's all-reduce, under mpirun or launch; needs a build with MPI",
                  make_mpi_collectives},
    CollectiveRow{"nccl", "NVIDIA GPUs; not in this build", nccl_is_absent},
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
