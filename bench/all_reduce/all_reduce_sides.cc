#include "bench/all_reduce/all_reduce_sides.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "bench/harness/peer.h"
#include "models/base/errors.h"
#include "models/base/own_program.h"
#include "models/base/resource_limits.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string find_jemalloc() {
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/lib", "/usr/local/lib"}) {
    const fs::path file = fs::path(folder) / "libjemalloc.so.2";
    if (fs::exists(file)) return file.string();
  }
  throw UnavailableError("libjemalloc.so.2 is not installed: install libjemalloc2");
}

Words mpi_command(const AllReduceOptions& options, const Words& settings) {
  const fs::path program = own_program().parent_path() / "peers" / "mpi_all_reduce";
  if (!fs::exists(program)) {
    throw UnavailableError(
        "it is not built here: install openmpi-bin and libopenmpi-dev, then run cmake again");
  }
  Words words = {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun"};
  if (options.ranks <= usable_cpu_count()) {
    words.insert(words.end(), {"--bind-to", "core"});
  } else {
    words.emplace_back("--oversubscribe");
  }
  words.insert(words.end(), settings.begin(), settings.end());
  words.insert(words.end(), {"-n", std::to_string(options.ranks), program.string()});
  return words;
}

struct PeerRow {
  const char* name;
  bool unless_asked;  // whether it is measured if --peers is not given
  bool tcp;           // whether data goes over TCP; otherwise it goes through shared memory
  Words (*command)(const AllReduceOptions&);
};

const std::array kPeers = {
    PeerRow{"mpi", true, false, [](const AllReduceOptions& o) { return mpi_command(o, {}); }},
    PeerRow{"mpi-tcp", true, true,
            [](const AllReduceOptions& o) {
              return mpi_command(o, {"--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca",
                                     "btl_tcp_if_include", "lo", "-x",
                                     "LD_PRELOAD=" + reno_shim(own_program()).string()});
            }},
    PeerRow{"mpi-jemalloc", false, false,
            [](const AllReduceOptions& o) {
              // jemalloc keeps freed memory mapped; without this setting, large messages page-fault
              // again in each call.
              return mpi_command(o, {"-x", "LD_PRELOAD=" + find_jemalloc(), "-x",
                                     "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1"});
            }},
};

Words own_command(const AllReduceOptions& options, const std::string& transport,
                  std::int64_t largest_bytes) {
  return {
      own_program().string(), "all-reduce-rank", "--ranks",         std::to_string(options.ranks),
      "--transport",          transport,         "--largest-bytes", std::to_string(largest_bytes)};
}

}  // namespace

Names all_reduce_peers() {
  Names names = names_of(std::span<const PeerRow>(kPeers));
  names.emplace_back("none");
  return names;
}

AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes) {
  AllReduceSides result;
  for (const std::string& transport : options.transports) {
    result.sides.push_back({.name = "ours, " + transport,
                            .ours = true,
                            .tcp = transport == "tcp",
                            .command = own_command(options, transport, largest_bytes)});
  }
  std::vector<std::string> asked = options.peers;
  if (options.mpi_jemalloc) asked.emplace_back("mpi-jemalloc");
  for (const PeerRow& row : kPeers) {
    const bool named = std::find(asked.begin(), asked.end(), row.name) != asked.end();
    if (!named && !(options.peers.empty() && row.unless_asked)) continue;
    try {
      result.sides.push_back({.name = row.name, .tcp = row.tcp, .command = row.command(options)});
    } catch (const UnavailableError& error) {
      const std::string line = std::string(row.name) + ": " + error.what();
      if (named) throw UsageError("--peers " + line);
      result.absent.push_back(line);
    }
  }
  return result;
}

}  // namespace syncopate::bench
