// A parameter server: a shard with sockets around it. Server 0 also coordinates the job. Called by
// `syncopate serve`, and by `syncopate train` where the cluster gives it the role of a server.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/file_descriptor.h"
#include "ps/net/endpoint.h"
#include "ps/net/slow_link.h"

namespace syncopate::ps {

struct ServerOptions {
  int index = 0;
  int workers = 1;
  int servers = 1;
  // The endpoint of server 0's control socket. Server 0 listens at its listening_endpoint(), and
  // every server listens for data at the listening_endpoint() of `host`.
  Endpoint rendezvous;
  FileDescriptor listening;        // server 0: may be empty, or a socket listening there
  std::string host = "127.0.0.1";  // the name under which workers reach this server
  std::uint16_t data_port = 0;     // of the data socket; 0: the system chooses
  std::string nonce;
  int threads = 1;                     // update threads, including the data thread
  std::filesystem::path snapshot_dir;  // empty: no snapshots
  // Called on a thread of its own before each snapshot file is written. Throws if snapshot_dir may
  // not be written now, because another job uses it.
  std::function<void()> renew_snapshot_dir{};
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);
  std::filesystem::path record;  // file of the order of pushes; empty: none
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // The longest time between admission and readiness of a worker. During this time it reads its
  // data, and the first worker writes the initial values.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  // How long the job waits for workers to reconnect when no worker is left.
  std::chrono::milliseconds worker_timeout = std::chrono::seconds(5);
  // True: a server that ends is restarted by the launcher. False: its end fails the job.
  bool servers_return = false;
  // The same for a worker that ends before all tasks have registered.
  bool workers_return = true;
  bool uses_segments = true;  // use the shared memory of workers on this host
  // The limit of bytes of unanswered pushes over all workers, and of answers. Limits beyond the
  // size of the last-level cache cost more than they gain.
  std::int64_t credit_bytes = std::int64_t{8} << 20;
  Link link;  // slow network emulated for the data socket
  // Server 0 only: workers that training does not wait for at the start.
  std::vector<int> late_workers;
  bool announces = false;  // whether to note at the start the endpoint and awaited tasks
};

// The counts that a server reports at the end.
struct ServerSummary {
  std::int64_t pushes = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
  // Of programs that are not of the job, at the sockets for control and for data: messages without
  // a valid header, other messages, and connections that ended without a greeting.
  std::int64_t foreign_messages = 0;
  std::int64_t stranger_messages = 0;
  std::int64_t callers_without_greeting = 0;
};

// Serves one job to its end. `stop` is called periodically and returns true once the server is
// asked to stop; it then ends with its workers, or when StopTimeout has passed. `note` shows a line
// to the user. Throws PeerError if the job failed, UsageError (for example if the port is in use or
// the host unknown) and FileError.
ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note);

}  // namespace syncopate::ps
