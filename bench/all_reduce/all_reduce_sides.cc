#include "bench/all_reduce/all_reduce_sides.h"

#include <algorithm>
#include <array>
#include <filesystem>

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
  throw UsageError("libjemalloc.so.2 is not installed: install libjemalloc2");
}

Words mpi_command(const AllReduceOptions& options, const Words& settings) {
  const fs::path program = own_program().parent_path() / "peers" / "mpi_all_reduce";
  if (!fs::exists(program)) {
    throw UsageError(
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
  Words (*command)(const AllReduceOptions&);
};

const std::array kPeers = {
    PeerRow{"mpi", true, [](const AllReduceOptions& o) { return mpi_command(o, {}); }},
    PeerRow{"mpi-jemalloc", false,
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

void require_known(const std::vector<std::string>& peers) {
  std::string known;
  for (const PeerRow& row : kPeers) known.append(row.name).append(", ");
  for (const std::string& peer : peers) {
    bool found = peer == "none";
    for (const PeerRow& row : kPeers) found = found || peer == row.name;
    if (found) continue;
    throw UsageError(std::string("--peers ").append(peer).append(": choose from ") + known +
                     "none");
  }
}

}  // namespace

AllReduceSides find_all_reduce_sides(const AllReduceOptions& options, std::int64_t largest_bytes) {
  AllReduceSides result;
  for (const std::string& transport : options.transports) {
    if (transport != "shm" && transport != "tcp") {
      throw UsageError("--transport " + transport + ": choose from shm, tcp");
    }
    result.sides.push_back({.name = "ours, " + transport,
                            .ours = true,
                            .tcp = transport == "tcp",
                            .command = own_command(options, transport, largest_bytes)});
  }
  std::vector<std::string> asked = options.peers;
  if (options.mpi_jemalloc) asked.emplace_back("mpi-jemalloc");
  require_known(asked);
  for (const PeerRow& row : kPeers) {
    const bool named = std::find(asked.begin(), asked.end(), row.name) != asked.end();
    if (!named && !(options.peers.empty() && row.unless_asked)) continue;
    try {
      result.sides.push_back({.name = row.name, .command = row.command(options)});
    } catch (const UsageError& error) {
      const std::string line = std::string(row.name) + ": " + error.what();
      if (named) throw UsageError("--peers " + line);
      result.absent.push_back(line);
    }
  }
  return result;
}

}  // namespace syncopate::bench
