#include "bench/ps/peers/ps_peers.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/harness/bench_commands.h"
#include "bench/ps/peers/ends.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct PeerRow {
  std::string_view name;
  std::string_view description;
  bool tcp;
  // Whether a library owns the sockets and has no option for the congestion control.
  bool needs_reno_shim;
  // Whether the process is bound to one core. A library's own threads run faster where the system
  // places them than on the core of their caller.
  bool is_bound;
  std::unique_ptr<ExchangeEnd> (*make)(RankGroup&);  // null: the peer is a program of its own
  std::string_view program = {};                     // in peers/
};

constexpr std::array kPeers = {
    PeerRow{"zmq", "ZeroMQ, DEALER and ROUTER, 1 MB frames without a copy, reno", true, true, false,
            [](RankGroup& group) { return make_zeromq_end(group, false); }},
    PeerRow{"zmq-copied", "the same; the worker copies what comes back into one block", true, true,
            false, [](RankGroup& group) { return make_zeromq_end(group, true); }},
    PeerRow{"tcp", "one TCP connection, in place, reno", true, false, true,
            [](RankGroup& group) { return make_tcp_end(group); }},
    PeerRow{"shm-copied", "copied into shared memory and out again, both ways", false, false, true,
            [](RankGroup& group) { return make_segment_end(group); }},
    PeerRow{"ps-lite", "", true, true, false, nullptr, "ps_lite_exchange"},
};

const PeerRow& find_row(std::string_view name) {
  const auto* row = std::ranges::find(kPeers, name, &PeerRow::name);
  if (row != kPeers.end()) return *row;
  throw UsageError("--peers " + std::string(name) + ": no such peer; choose from " +
                   ps_peer_names() + ", or none");
}

fs::path part_of_peer(const PeerRow& row, const fs::path& program, std::string_view file,
                      std::string_view how) {
  fs::path path = program.parent_path() / "peers" / file;
  if (fs::exists(path)) return path;
  throw UnavailableError(
      fmt::format("peer {} needs {}, which is not there; {}", row.name, path.string(), how));
}

Words command_of(const PeerRow& row, const fs::path& program) {
  Words words = {program.string(), std::string(kPsPeerRank), "--transport", std::string(row.name)};
  if (!row.program.empty()) {
    words = {part_of_peer(row, program, row.program,
                          "run bench/peers/build_ps_lite.sh, cmake and the build again")
                 .string()};
  }
  if (!row.needs_reno_shim) return words;
  const fs::path shim = part_of_peer(row, program, "libreno_shim.so", "build the target reno_shim");
  words.insert(words.begin(), {"env", "LD_PRELOAD=" + shim.string()});
  return words;
}

// Makes malloc keep freed memory; otherwise large frames page-fault again each time.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace

std::string ps_peer_names() {
  std::string names;
  for (const PeerRow& row : kPeers) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

PsPeers find_ps_peers(const std::vector<std::string>& names, const fs::path& program) {
  PsPeers peers;
  const auto add = [&](const PeerRow& row) {
    peers.sides.push_back({.name = std::string(row.name),
                           .ours = false,
                           .tcp = row.tcp,
                           .command = command_of(row, program)});
  };
  for (const std::string& name : names) add(find_row(name));
  if (!names.empty()) return peers;
  for (const PeerRow& row : kPeers) {
    try {
      add(row);
    } catch (const UnavailableError& error) {
      peers.absent.emplace_back(error.what());
    }
  }
  return peers;
}

void run_ps_peer_rank(const PsPeerRankOptions& options) {
  const PeerRow& row = find_row(options.transport);
  check(row.make != nullptr, "this program is both ends of the peer");
  keep_freed_memory();
  const auto group = make_rank_group(options.rank, 2,
                                     {std::string(kPsPeerRank), "--transport", options.transport});
  if (row.is_bound) bind_this_thread(cpu_share(usable_cpus(), options.rank, 2));
  const std::unique_ptr<ExchangeEnd> end = row.make(*group);
  serve_exchanges(*group, *end, row.description);
}

Command declare_ps_peer_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsPeerRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = 1});
  flags.add("--transport", &options->transport, "");
  return [options] { run_ps_peer_rank(*options); };
}

}  // namespace syncopate::bench
