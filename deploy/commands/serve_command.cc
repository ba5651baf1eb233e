// `syncopate serve`, and `syncopate train` for a task with the server role.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iostream>
#include <optional>

#include "deploy/commands/commands.h"
#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/open_files.h"
#include "models/base/resource_limits.h"
#include "ps/net/endpoint.h"
#include "ps/server/order_record.h"
#include "ps/server/server.h"
#include "strategies/cluster/prepare_rendezvous.h"
#include "worker/run/job_membership.h"
#include "worker/run/run_folder.h"

namespace syncopate {
namespace {

constexpr int kMostUpdateThreads = 4;
// The time within which a failed worker is expected to be back, if the scheduler or the user
// restarts it.
constexpr std::chrono::seconds kRestartMayTake(60);
constexpr std::chrono::milliseconds kLongestWaitForFolder(10000);

// True if the cluster lists the address of this server.
bool is_listed(const ClusterSpec& cluster) {
  return static_cast<std::size_t>(cluster.index) < cluster.servers.size();
}

// Returns the host name at which workers reach this server. A server that was started by hand uses
// the name of its host, unless all tasks call it at the rendezvous.
std::string host_for_workers(const ClusterSpec& cluster) {
  if (is_listed(cluster)) return cluster.servers[static_cast<std::size_t>(cluster.index)].host;
  const std::string& there = cluster.rendezvous.endpoint->host;
  if (there == "localhost" || there.starts_with("127.")) return there;
  const bool is_called_there = cluster.hosts_rendezvous() && there != "0.0.0.0" && there != "::";
  if (cluster.source != "flags" || is_called_there) return own_host_towards(cluster);
  return own_host_name();
}

// Returns the listed port for this server's data. Server 0's listed port hosts the rendezvous, so
// its data uses another port.
std::uint16_t listed_port(const ClusterSpec& cluster) {
  if (!is_listed(cluster) || cluster.index == 0) return 0;
  return cluster.servers[static_cast<std::size_t>(cluster.index)].port;
}

FileDescriptor listening_socket(const ClusterSpec& cluster) {
  if (!cluster.hosts_rendezvous() || cluster.rendezvous.descriptor < 0) return {};
  return FileDescriptor(cluster.rendezvous.descriptor);
}

int default_update_threads() { return std::clamp(usable_cpu_count(), 1, kMostUpdateThreads); }

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(1000.0 * seconds));
}

// Warns once when a server has as many files open as it may: no task can connect to it then.
class OpenFileWatch {
 public:
  // Called periodically; looks once a second.
  void look() {
    if (was_reached_ || !next_look_.passed()) return;
    next_look_ = Deadline::after(std::chrono::seconds(1));
    was_reached_ = is_open_file_limit_reached();
    if (was_reached_) log(LogLevel::kWarning, describe_errno("accept", "connections", EMFILE));
  }

 private:
  Deadline next_look_ = Deadline::after(std::chrono::seconds(1));
  bool was_reached_ = false;
};

int serve(ps::ServerOptions options, const ClusterSpec& cluster, StopSignal& signals) {
  require_open_files(needed_open_files(cluster), place_in_job(cluster));
  bool asked_to_stop = false;
  OpenFileWatch open_files;
  const auto stop = [&] {
    open_files.look();
    if (signals.poll()) asked_to_stop = true;
    return asked_to_stop;
  };
  const auto note = [](const std::string& line) {
    std::cerr << "syncopate: " + line + "\n" << std::flush;
  };
  // The checkpoint folder is locked before snapshots of other jobs are removed from it. The wait
  // for the lock must end while the workers still wait for this server.
  std::optional<FolderLock> folder;
  if (!options.snapshot_dir.empty()) {
    const auto timeout = std::min(kLongestWaitForFolder, options.rendezvous_timeout / 2);
    folder = take_run_folder(options.snapshot_dir, cluster, timeout);
    options.renew_snapshot_dir = [&folder] { folder->renew(); };
  }
  if (!options.record.empty()) {
    try_record(ps::order_record_path(options.record.string(), options.index, 1));
  }
  const ps::ServerSummary summary = ps::run_server(std::move(options), stop, note);
  note(fmt::format("served {} pushes; staleness: mean {:.2f}, max {}", summary.pushes,
                   summary.staleness_mean, summary.staleness_max));
  const std::int64_t strangers =
      summary.foreign_messages + summary.stranger_messages + summary.callers_without_greeting;
  if (strangers > 0) {
    note(fmt::format(
        "not from tasks of this job, or from tasks that it gave up: {} messages without a valid "
        "header, {} other messages, and {} connections without a greeting",
        summary.foreign_messages, summary.stranger_messages, summary.callers_without_greeting));
  }
  return 0;
}

}  // namespace

int run_serve(const ServeOptions& options, StopSignal& signals) {
  ClusterSpec cluster = options.cluster;
  const auto nonce_file = share_nonce(cluster, milliseconds_of(options.rendezvous_timeout));
  prepare_rendezvous(cluster);
  const bool keeps = !options.snapshot_dir.empty();
  const std::chrono::milliseconds peer_timeout =
      served_peer_timeout(milliseconds_of(options.peer_timeout), cluster);
  return serve({.index = cluster.index,
                .workers = cluster.world_size,
                .servers = cluster.num_servers,
                .rendezvous = *cluster.rendezvous.endpoint,
                .listening = listening_socket(cluster),
                .host = options.host.empty() ? host_for_workers(cluster) : options.host,
                .data_port = static_cast<std::uint16_t>(options.port),
                .nonce = cluster.nonce,
                .threads = options.threads > 0 ? options.threads : default_update_threads(),
                .snapshot_dir = options.snapshot_dir,
                .snapshot_interval = milliseconds_of(options.snapshot_every),
                .record = options.record,
                .rendezvous_timeout = milliseconds_of(options.rendezvous_timeout),
                .peer_timeout = peer_timeout,
                .worker_timeout = keeps ? std::chrono::milliseconds(kRestartMayTake) : peer_timeout,
                .servers_return = keeps,
                .workers_return = !cluster.nonce.empty(),
                .link = options.link,
                .announces = true},
               cluster, signals);
}

int run_train_server(const TrainOptions& options, StopSignal& signals) {
  ClusterSpec cluster = options.cluster;
  const auto nonce_file = share_nonce(cluster, options.rendezvous_timeout);
  prepare_rendezvous(cluster);
  const std::chrono::milliseconds peer_timeout = served_peer_timeout(options.peer_timeout, cluster);
  return serve({.index = cluster.index,
                .workers = cluster.world_size,
                .servers = cluster.num_servers,
                .rendezvous = *cluster.rendezvous.endpoint,
                .listening = listening_socket(cluster),
                .host = host_for_workers(cluster),
                .data_port = listed_port(cluster),
                .nonce = cluster.nonce,
                .threads = default_update_threads(),
                .snapshot_dir = options.loop.checkpoint_dir,
                .snapshot_interval = options.snapshot_interval,
                .record = options.record,
                .rendezvous_timeout = options.rendezvous_timeout,
                .peer_timeout = peer_timeout,
                .worker_timeout =
                    cluster.restarts ? std::chrono::milliseconds(kRestartMayTake) : peer_timeout,
                .servers_return = cluster.restarts && !options.loop.checkpoint_dir.empty(),
                .workers_return = cluster.restarts,
                .uses_segments = options.strategy.transport != Transport::kTcp,
                .link = options.strategy.link,
                .late_workers = cluster.late_workers},
               cluster, signals);
}

}  // namespace syncopate
