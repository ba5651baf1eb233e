// Runs the servers of a job on threads of this process, with real sockets, and provides workers for
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ps/client/client.h"
#include "ps/server/server.h"

namespace syncopate::ps::testing {

struct JobShape {
  int workers = 1;
  int servers = 1;
  int consistency = 2;  // the number of a Consistency
  int max_staleness = 0;
  int backup_workers = 0;
  int quorum = 0;
  double grace = 0.0;
  std::string optimizer = "sgd";
  bool bf16_values = false;
  std::vector<std::int64_t> bucket_sizes = {8};  // assigned to the servers in turn
  int variables_of_bucket = 1;                   // each of them of the size in `bucket_sizes`
  std::int64_t state_elements = 0;
  std::int64_t dataset_size = 1000;
  std::int64_t batch_size = 1;
  std::int64_t total_steps = 1000;
  std::string nonce = "nonce";
  std::chrono::milliseconds join_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
};

wire::DeclarationT declaration_of(const JobShape& shape);
std::int64_t total_elements(const JobShape& shape);

class ServedJob {
 public:
  explicit ServedJob(const JobShape& shape);
  ~ServedJob();  // ends the servers; their errors are in failures_

  const Endpoint& rendezvous() const noexcept { return rendezvous_; }
  // Waits until all servers have ended; returns the error of each, or "" for a server without an
  // error.
  std::vector<std::string> wait();
  // Returns whether a server has noted a line that begins so, or notes one within `timeout`.
  bool has_noted(const std::string& beginning,
                 std::chrono::seconds timeout = std::chrono::seconds(0)) const;

 private:
  void serve(ServerOptions options);

  Endpoint rendezvous_;
  std::atomic<bool> stop_{false};
  std::vector<std::string> failures_;
  mutable std::mutex mutex_;
  mutable std::condition_variable noted_;
  std::vector<std::string> notes_;  // of all servers. GUARDED_BY(mutex_)
  std::vector<std::jthread> threads_;
};

// A TestWorker is a worker with memory of its own.
class TestWorker {
 public:
  TestWorker(const JobShape& shape, const ServedJob& job, int index,
             const CompressionOptions& compression = {});

  // Starts training: waits for all workers; worker 0 writes `first` to all elements. Returns when
  // training has begun and the values have arrived.
  void begin(float first = 0.0F);
  // Trains one step in which every gradient is `gradient`, at learning rate 1; waits for the
  // values.
  void step(float gradient, const SampleRange& batch = {});
  float value(int bucket) const;

  std::vector<float> values;
  std::vector<float> gradients;
  std::unique_ptr<Client> client;

 private:
  const JobShape shape_;
};

}  // namespace syncopate::ps::testing
