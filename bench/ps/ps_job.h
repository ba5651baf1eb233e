// Implements the parameter-server job that `syncopate-bench ps` measures. Each server and each
// worker runs in a process of its own (ps_side.cc). The model consists of variables with the
// requested number of bytes and has no layers.
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
  bool tcp = false;  // false: worker and server share memory
  std::string optimizer = "sgd";
  std::string compression = "none";   // "none" or "bf16"
  std::string consistency = "async";  // "async" or "sync"
};

// Runs one server of the job on a thread of its own.
class PsJobServer {
 public:
  // Starts server number `index`. listening: the socket of server 0 at the rendezvous; empty for
  // other servers.
  PsJobServer(const PsJobOptions& options, int index, const Endpoint& rendezvous,
              FileDescriptor listening);
  ~PsJobServer();  // stops the server; the job fails if it is not over
  PsJobServer(const PsJobServer&) = delete;
  PsJobServer& operator=(const PsJobServer&) = delete;

  // Waits for the end of the job. Throws the exception of the server if it failed.
  void wait();

 private:
  std::atomic<bool> stop_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // declared last, because the thread uses the other members
};

// A worker with constant gradients. Every update therefore changes all values by the same amount,
// so that the values can be checked.
class PsJobWorker {
 public:
  // Joins the job, and returns when all tasks are connected and the initial values have arrived.
  // Throws what ps::Client throws. Throws UsageError if there are more servers than parts into
  // which the model can be divided.
  PsJobWorker(const PsJobOptions& options, const ExchangeShape& shape, int index,
              const Endpoint& rendezvous);

  // Makes one step: pushes all gradients and returns when all new values have arrived. batch: the
  // samples that the worker has leased for this step; empty if it leased none.
  void exchange(const ps::SampleRange& batch = {});
  // Pulls the values and checks them. Every worker must have made `exchanges` exchanges, and no
  // exchange may run during the call. Throws PeerError for a wrong value.
  void require_values(std::int64_t exchanges);
  // Ends the worker's part of the job; every worker calls this.
  void end();

 private:
  const PsJobOptions options_;
  ps::Placement placement_;
  std::unique_ptr<ps::SegmentOwner> segment_;
  Tensor values_;
  Tensor gradients_;
  std::vector<bool> is_padding_;  // marks elements that are padding after a variable
  std::unique_ptr<ps::Client> client_;
};

}  // namespace syncopate::bench
