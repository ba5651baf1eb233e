// One job of parameter servers that `syncopate-bench ps` measures: a server's end and a worker's
// end, each in a process of its own (ps_side.cc). The model is one of nothing but the bytes that
// are asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/ps/peers/exchange.h"
#include "models/base/file_descriptor.h"
#include "ps/client/client.h"
#include "ps/net/endpoint.h"
#include "ps/net/segment.h"
#include "ps/shard/placement.h"

namespace syncopate::bench {

struct PsJobOptions {
  int workers = 1;
  int servers = 1;
  bool tcp = false;  // else through memory that worker and server share
  std::string optimizer = "sgd";
  std::string consistency = "async";  // or "sync"
};

// Serves one job on a thread of its own.
class PsJobServer {
 public:
  // listening: server 0's, at the rendezvous.
  PsJobServer(const PsJobOptions& options, int index, const Endpoint& rendezvous,
              FileDescriptor listening);
  ~PsJobServer();  // of a job that is not over: it fails
  PsJobServer(const PsJobServer&) = delete;
  PsJobServer& operator=(const PsJobServer&) = delete;

  // Returns when the job is over. Throws what ended it, if it was not its workers.
  void wait();

 private:
  std::atomic<bool> stop_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: it uses the rest
};

// A worker with gradients that never change, so that every update moves every value alike.
class PsJobWorker {
 public:
  // Returns when all have met and the values are there. Throws as ps::Client does, and UsageError
  // where there are more servers than parts.
  PsJobWorker(const PsJobOptions& options, const ExchangeShape& shape, int index,
              const Endpoint& rendezvous);

  // Pushes every gradient; returns when all new values are there.
  void exchange(const ps::SampleRange& batch = {});
  // Pulls the values and throws PeerError unless they are what so many exchanges of every worker
  // make of them. While nobody exchanges.
  void require_values(std::int64_t exchanges);
  // All workers call it: the job is over.
  void end();

 private:
  const PsJobOptions options_;
  ps::Placement placement_;
  std::unique_ptr<ps::SegmentOwner> segment_;
  Tensor values_;
  Tensor gradients_;
  std::vector<bool> is_padding_;  // behind each variable
  std::unique_ptr<ps::Client> client_;
};

}  // namespace syncopate::bench
