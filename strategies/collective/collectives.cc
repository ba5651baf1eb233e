#include "strategies/collective/collectives.h"

#include <fmt/format.h>

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Tasks of one host sum in shared memory with the ring's order of additions; tasks of several hosts
// sum by a ring all-reduce over TCP.
std::vector<std::unique_ptr<Collective>> make_ring_collectives(const CollectiveOptions& options) {
  if (options.transport == Transport::kTcp) return make_tcp_ring_collectives(options);
  if (options.membership == nullptr || options.membership->members().size() == 1) {
    return make_local_collectives(options);
  }
  std::vector<std::unique_ptr<Collective>> ranks = make_shared_memory_collectives(options);
  if (!ranks.empty()) return ranks;
  if (options.transport == Transport::kShm) {
    throw UsageError(
        "--transport shm: the tasks cannot map one segment of memory, they are on several hosts or "
        "in containers with separate networks; choose auto or tcp");
  }
  return make_tcp_ring_collectives(options);
}

// NCCL sums only the gradients that stay on GPUs (strategies/join_replicas.h). Step reports, first
// values and checkpoints use the collective of the host.
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
    CollectiveRow{"nccl", "NVIDIA GPUs, one for each replica", make_beside_nccl},
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
  throw UsageError(
      fmt::format("--collective {}: no such collective; choose one of {}", options.name, known));
}

void check_all_reduce(const Tensor& tensor) {
  const bool summable = tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kBf16;
  if (summable && tensor.device().kind == DeviceKind::kCpu) return;
  throw ShapeError(
      fmt::format("all_reduce: the tensor is {} on {}; expected f32 or bf16 on the "
                  "host",
                  name(tensor.dtype()), to_string(tensor.device())));
}

void check_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, int size) {
  const std::size_t expected = mine.size() * static_cast<std::size_t>(size);
  if (all.size() == expected && mine.size() <= Collective::kMostGatheredBytes) return;
  throw ShapeError(fmt::format(
      "all_gather: {} bytes of each of {} ranks into {}; expected {}, and "
      "at most {} per rank",
      mine.size(), size, all.size(), expected, std::size_t{Collective::kMostGatheredBytes}));
}

void check_broadcast(int root, int size) {
  if (root >= 0 && root < size) return;
  throw ShapeError(fmt::format("broadcast: from rank {}; expected 0 to {}", root, size - 1));
}

}  // namespace syncopate
