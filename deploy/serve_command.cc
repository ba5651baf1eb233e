// `syncopate serve`, and `syncopate train` where the cluster gives the task the role of a server.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <iostream>

#include "deploy/commands.h"
#include "deploy/formatted.h"
#include "deploy/output_paths.h"
#include "models/base/affinity.h"
#include "ps/order_record.h"
#include "ps/server.h"

namespace syncopate {
namespace {

constexpr int kMostUpdateThreads = 4;
// A worker that ended by failure is back within this, if somebody starts it again.
constexpr std::chrono::seconds kRestartMayTake(60);

// Where workers reach this server, unless --host says otherwise.
std::string own_host(const Endpoint& rendezvous) {
  if (rendezvous.host == "localhost" || rendezvous.host.starts_with("127.")) return rendezvous.host;
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

int default_update_threads() {
  return std::clamp(static_cast<int>(usable_cpus().size()), 1, kMostUpdateThreads);
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(1000.0 * seconds));
}

int serve(ps::ServerOptions options, StopSignal& signals) {
  bool asked_to_stop = false;
  const auto stop = [&] {
    if (signals.poll()) asked_to_stop = true;
    return asked_to_stop;
  };
  const auto note = [](const std::string& line) {
    std::cerr << "syncopate: " + line + "\n" << std::flush;
  };
  if (!options.snapshot_dir.empty()) make_checkpoint_folder(options.snapshot_dir);
  if (!options.record.empty()) {
    try_record(ps::order_record_path(options.record.string(), options.index, 1));
  }
  const ps::ServerSummary summary = ps::run_server(std::move(options), stop, note);
  note(formatted("served %lld pushes; staleness: mean %.2f, max %llu",
                 static_cast<long long>(summary.pushes), summary.staleness_mean,
                 static_cast<unsigned long long>(summary.staleness_max)));
  return 0;
}

}  // namespace

int run_serve(const ServeOptions& options, StopSignal& signals) {
  const Endpoint rendezvous = parse_endpoint(options.rendezvous, "--rendezvous");
  return serve(
      {.index = options.index,
       .workers = options.workers,
       .servers = options.servers,
       .rendezvous = rendezvous,
       .listening = {},
       .host = options.host.empty() ? own_host(rendezvous) : options.host,
       .data_port = static_cast<std::uint16_t>(options.port),
       .nonce = options.nonce,
       .threads = options.threads > 0 ? options.threads : default_update_threads(),
       .snapshot_dir = options.snapshot_dir,
       .snapshot_interval = milliseconds_of(options.snapshot_every),
       .record = options.record,
       .rendezvous_timeout = milliseconds_of(options.rendezvous_timeout),
       .peer_timeout = milliseconds_of(options.peer_timeout),
       .worker_patience = options.snapshot_dir.empty() ? milliseconds_of(options.peer_timeout)
                                                       : std::chrono::milliseconds(kRestartMayTake),
       .servers_return = !options.snapshot_dir.empty(),
       .link = options.link},
      signals);
}

int run_train_server(const TrainOptions& options, StopSignal& signals) {
  const ClusterSpec& cluster = options.cluster;
  // The source lists addresses, or all tasks are on this machine.
  const bool is_listed = static_cast<std::size_t>(cluster.index) < cluster.servers.size();
  const Endpoint listed =
      is_listed ? cluster.servers[static_cast<std::size_t>(cluster.index)] : Endpoint{};
  FileDescriptor listening;
  if (cluster.index == 0 && cluster.rendezvous_descriptor >= 0) {
    listening = FileDescriptor(cluster.rendezvous_descriptor);
  }
  const std::chrono::milliseconds peer_timeout =
      options.peer_timeout.count() > 0 ? options.peer_timeout : std::chrono::milliseconds(5000);
  return serve({.index = cluster.index,
                .workers = cluster.world_size,
                .servers = cluster.num_servers,
                .rendezvous = *cluster.rendezvous,
                .listening = std::move(listening),
                .host = is_listed ? listed.host : "127.0.0.1",
                // Server 0's listed port is where all meet; its data has one of its own.
                .data_port = is_listed && cluster.index != 0 ? listed.port : std::uint16_t{0},
                .nonce = cluster.nonce,
                .threads = default_update_threads(),
                .snapshot_dir = options.loop.checkpoint_dir,
                .snapshot_interval = options.snapshot_interval,
                .record = options.record,
                .rendezvous_timeout = options.rendezvous_timeout,
                .peer_timeout = peer_timeout,
                .worker_patience =
                    cluster.restarts ? std::chrono::milliseconds(kRestartMayTake) : peer_timeout,
                .servers_return = cluster.restarts && !options.loop.checkpoint_dir.empty(),
                .uses_segments = options.strategy.transport != Transport::kTcp,
                .link = options.strategy.link},
               signals);
}

}  // namespace syncopate
