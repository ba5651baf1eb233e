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
  // The endpoint of server 0's control socket. Server 0 listens at the listening_endpoint() of this
  // endpoint, and every server listens for data at the listening_endpoint() of `host`.
  Endpoint rendezvous;
  // For server 0 only: a socket that already listens at the rendezvous; may be empty.
  FileDescriptor listening;
  std::string host = "127.0.0.1";  // the name under which workers reach this server
  std::uint16_t data_port = 0;     // port of the data socket; 0 lets the system choose
  std::string nonce;
  int threads = 1;                     // update threads, including the data thread
  std::filesystem::path snapshot_dir;  // folder of snapshot files; empty for no files
  // A function that is called before each snapshot file is written, on the thread that writes the
  // file. The function throws if snapshot_dir must not be written because another job uses the
  // folder.
  std::function<void()> renew_snapshot_dir{};
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);
  // File for the record of pushes (order_record.h); empty for no record.
  std::filesystem::path record;
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // The longest time between the admission of a worker and its readiness. During this time the
  // worker reads its data, and the first worker writes the initial values.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  // How long the job waits for workers to reconnect when no worker is left.
  std::chrono::milliseconds worker_timeout = std::chrono::seconds(5);
  // Whether the launcher restarts a server that ends. If not, the end of a server fails the job.
  bool servers_return = false;
  // Whether the launcher restarts a worker that ends before all tasks have registered. If not, the
  // end of such a worker fails the job.
  bool workers_return = true;
  bool uses_segments = true;  // use the shared memory of workers on this host
  // The limit in bytes for the unanswered requests of all workers together. A push counts with its
  // gradient or its answer, whichever is larger. A limit beyond the size of the last-level cache
  // costs more than it gains.
  std::int64_t credit_bytes = std::int64_t{8} << 20;
  Link link;  // slow network emulated for the data socket
  // Server 0 only: workers that may join after the start of training.
  std::vector<int> late_workers;
  bool announces = false;  // whether to show the endpoint and the awaited tasks at the start
};

// The counts that a server reports at the end of the job.
struct ServerSummary {
  std::int64_t pushes = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
  // Counts of what programs that are not part of the job sent to the control and data sockets.
  // foreign_messages counts messages without a valid header, stranger_messages all other messages.
  // callers_without_greeting counts connections that ended without a greeting of this job.
  std::int64_t foreign_messages = 0;
  std::int64_t stranger_messages = 0;
  std::int64_t callers_without_greeting = 0;
};

// Serves one job to its end. `stop` is called periodically, and returns true once the server was
// asked to stop. The server then ends when its workers have ended, or when StopTimeout has passed.
// `note` shows a line to the user. Throws PeerError if the job has failed. Throws UsageError, for
// example if the port is in use or the host is unknown. Throws FileError.
ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note);

}  // namespace syncopate::ps
