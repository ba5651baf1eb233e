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
#include "ps/net/link.h"

namespace syncopate::ps {

struct ServerOptions {
  int index = 0;
  int workers = 1;
  int servers = 1;
  // Where server 0 listens for control, and the others call. Any host of it: "0.0.0.0". Loopback
  // alone where it names that, else every interface; so too for `host`.
  Endpoint rendezvous;
  FileDescriptor listening;  // server 0: a socket that listens there already; none: it opens one
  std::string host = "127.0.0.1";  // under which workers reach this server's data socket
  std::uint16_t data_port = 0;     // 0: the system chooses
  std::string nonce;
  int threads = 1;                     // that update; a socket's thread counts where it is busy
  std::filesystem::path snapshot_dir;  // "": none are kept
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(10);
  std::filesystem::path record;  // of the order of pushes; "": none
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // How long a worker that was let in may take until it is ready to train: it reads its data, and
  // the first one writes the values.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  // How long it waits for workers that may come back when none is left.
  std::chrono::milliseconds worker_patience = std::chrono::seconds(5);
  // Somebody starts a server again that has ended; else the job is over with the first one.
  bool servers_return = false;
  bool uses_segments = true;  // of workers on this machine
  // Bytes of pushes under way, over all workers, and as many of answers. More than a last-level
  // cache holds costs more than it brings.
  std::int64_t credit_bytes = std::int64_t{8} << 20;
  Link link;  // of its data socket
  // Server 0: workers that the job begins without.
  std::vector<int> late_workers;
  bool announces = false;  // notes at the start where it listens or calls, and whom it waits for
};

// What a server says at the end.
struct ServerSummary {
  std::int64_t pushes = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
};

// Serves one job to its end. `stop` is asked now and then: true once somebody wants it to end,
// which it does when its workers have ended, or soon. `note`: lines for people. Throws PeerError
// when the job failed, UsageError (such as a port that is taken, a host that nobody knows) and
// FileError.
ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note);

}  // namespace syncopate::ps
