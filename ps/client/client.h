// A worker's connection to the parameter servers. The client joins the job, pulls values and pushes
// gradients without blocking, and receives batches and assignments from shard 0's coordinator. An
// I/O thread owns the sockets; all functions may be called from any thread unless they say
// otherwise. Source of the message flows: wire/PROTOCOL.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ps/client/client_errors.h"
#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/net/endpoint.h"
#include "ps/shard/gradient_codec.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

struct ClientOptions {
  int index = 0;
  int workers = 1;
  int servers = 1;
  Endpoint rendezvous;  // shard 0's control socket
  std::string nonce;
  wire::DeclarationT declaration;
  CompressionOptions compression;
  // The worker's memory of values and gradients, [arena total] f32 each, laid out as `declaration`
  // says. Must outlive the client.
  std::span<float> values;
  std::span<const float> gradients;
  // The name under which shards of this machine map the worker's memory (ps/net/segment.h). Empty:
  // the memory is not shared.
  std::string segment;
  bool requires_segment = false;  // set by --transport shm
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);  // server 0's own replaces it
  bool insists_on_peer_timeout = false;  // a different peer_timeout of server 0 is a UsageError
  // How long a shard may be gone before the job fails: the shard may be started again.
  std::chrono::milliseconds server_timeout = std::chrono::seconds(5);
  // How long an open connection to a shard may be silent after a request that is answered at once.
  // Then the client connects again. The timeout doubles, up to ten times its value, while new
  // connections bring no answer.
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(6);
  // Returns whether this task was asked to stop: the client then waits for a missing server for a
  // shorter time. Called by the I/O thread. May be empty.
  std::function<bool()> asked_to_stop;
};

// What a worker sends with the pushes of one step.
struct StepInfo {
  float learning_rate = 0.0F;
  SampleRange batch;  // the batch that shard 0 has leased; empty if it leases none
  int lanes = 1;
  double loss = 0.0;
  double metric = 0.0;
  std::int64_t samples = 0;
  std::int64_t num_bad = 0;  // samples that were replaced because they could not be read
  StopCounts stops;
  std::span<const float> state;  // running statistics; empty: none are sent
};

// A worker's client. A function that waits throws PeerError when the job failed or a shard stays
// away, and RolledBack when all shards went back to an earlier step, until resume() is called.
class Client {
 public:
  // Joins the job; returns when every shard has answered. Throws PeerError; UsageError when shard 0
  // refuses this worker's options or a host name is unknown; JobOver when the job has ended.
  explicit Client(const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // without leave() before, other tasks see a failed worker

  // Returns whether this worker writes the initial values of the variables.
  bool initialises() const;
  std::uint32_t incarnation() const;

  // Write the initial values: called by the initialising worker, before initialised(). Blocks are
  // arena-sized. `step` sets the versions: the next update is number `step` + 1.
  void write_variables(std::span<const float> values, std::span<const std::span<const float>> slots,
                       std::int64_t step);
  void write_state(std::span<const float> state);
  void initialised(const RunPosition& start);
  // Writes this worker's share of an average of the running statistics over all workers, weighted
  // by samples; empty for 0 samples. When the shares of all workers are written, the average is the
  // live state of snapshots. The numbers of averages ascend.
  struct StateShare {
    std::uint64_t average = 0;  // number of the average
    std::int64_t samples = 0;
  };
  void write_state(std::span<const float> state, const StateShare& share);
  // Returns when training begins. If this worker does not write the initial values, the call also
  // reports to shard 0 that the worker is ready.
  RunPosition wait_start();

  // Makes the client usable again after RolledBack was thrown; no thread may still use earlier
  // values or requests. The servers then send the restored values without pull().
  void resume();

  // Requests the values of all buckets, except those that arrive as answers to pushes.
  void pull();
  // Returns when the bucket's values that the last pull or push requested have arrived.
  void wait_values(int bucket);
  // Begins a step: the pushes that follow belong to it. One thread calls begin_step() and push().
  void begin_step(const StepInfo& info);
  // Sends the bucket's gradient, which must not change until wait_values(bucket) returns.
  void push(int bucket);
  // Ends the step. Returns its sums (loss, samples): under sync over all workers (with backup
  // workers: over the workers that were waited for), else of this worker alone.
  wire::StepSumsT finish_step();
  // Returns when every push and pull of this worker has been answered.
  void flush();

  // Waits for the worker's next batch; empty when no batches are left. One thread calls
  // next_lease(), one call at a time.
  std::optional<SampleRange> next_lease();
  wire::JobStatusT status() const;
  // Returns the next evaluation or checkpoint that this worker is assigned, if there is one.
  std::optional<wire::AssignmentT> assignment();
  // Waits for the worker's next assignment (evaluation, checkpoint); empty when the job is over.
  std::optional<wire::AssignmentT> wait_assignment();
  // Reads a snapshot into arena-sized blocks; `slots` may be empty. Throws SnapshotWithdrawn.
  void read_snapshot(std::uint64_t snapshot, std::span<float> values,
                     std::span<const std::span<float>> slots);
  std::vector<float> read_snapshot_state(std::uint64_t snapshot);
  // Reports that the assigned evaluation or checkpoint of this snapshot is done.
  // rules: as in RunPosition, if an evaluation has changed them; else empty.
  void complete_assignment(std::uint64_t snapshot, std::vector<double> rules = {});
  void request_stop(StopKind kind);

  // Collects a text of every worker; returns all texts by worker. All workers call exchange() in
  // the same order.
  std::vector<std::string> exchange(std::string_view mine);
  // Returns the number of the last exchange(), which grows and is the same for all workers.
  std::uint64_t exchanges() const;

  // Sets the number of the step that other tasks report if this worker fails.
  void report_step(std::int64_t step) noexcept;
  // Leaves the job after the last step; returns when shard 0 has confirmed. Throws RolledBack when
  // the job is not over.
  void leave();
  // Reports to the other tasks that this worker ends because of `reason`.
  void fail(std::string_view reason, bool ends_job) noexcept;
  // Wakes all threads that wait in this client; their calls throw PeerError with this reason.
  void abort(std::string_view reason) noexcept;

  // Counters of the client's pushes and pulls.
  struct Traffic {
    std::int64_t bytes_pushed = 0;
    std::int64_t bytes_pulled = 0;
    double peers_wait_seconds = 0.0;  // how long answers were held back for other workers
    int shards_in_segment = 0;        // shards that map this worker's memory
  };
  Traffic traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
