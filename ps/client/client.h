// A worker's connection to the parameter servers. The client joins the job, pulls values and pushes
// gradients without blocking, and receives batches and assignments from shard 0's coordinator. An
// I/O thread owns the sockets. Any thread may call any function unless the function's comment says
// otherwise. ps/wire/PROTOCOL.md defines the messages.
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
#include "ps/shard/stale_gradients.h"
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
  // The worker's memory of values and of gradients, each with one f32 for every element of the
  // parameter arena, in the layout that `declaration` describes. The memory must outlive the
  // client.
  std::span<float> values;
  std::span<const float> gradients;
  // The name under which shards on this machine map the worker's memory (ps/net/segment.h); empty
  // if the memory is not shared.
  std::string segment;
  bool requires_segment = false;  // set by --transport shm
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // How long server 0 may be silent before it counts as lost. Used until server 0 has accepted this
  // worker; from then on the client uses the peer_timeout of server 0.
  std::chrono::milliseconds peer_timeout = std::chrono::seconds(5);
  bool insists_on_peer_timeout = false;  // throw UsageError if server 0 has another peer_timeout
  // How long a shard may be gone before the job fails. During this time the shard may be started
  // again.
  std::chrono::milliseconds server_timeout = std::chrono::seconds(5);
  // How long an open connection to a shard may be silent after a request that shards answer at
  // once; afterwards the client connects again. The timeout doubles with each new connection that
  // brings no answer, up to ten times this value.
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(6);
  // Returns whether this task was asked to stop. If it was, the client waits for a missing server
  // for less than server_timeout. The I/O thread calls the function. May be empty.
  std::function<bool()> asked_to_stop;
};

// What a worker sends with the pushes of one step. If it pushes displacements, that is one round.
struct StepInfo {
  float learning_rate = 0.0F;
  // The batches that shard 0 has leased to this worker; empty if shard 0 leases no batches.
  std::vector<SampleRange> batches;
  // In a round: the worker's learning rate in each batch, for the record of the servers.
  std::vector<float> inner_rates;
  std::vector<std::int64_t> bad_of_batches;  // in a round: num_bad of each batch
  int lanes = 1;                             // number of lanes (threads) of the worker's replica
  double loss = 0.0;
  double metric = 0.0;
  std::int64_t samples = 0;
  std::int64_t num_bad = 0;  // samples that were replaced because they could not be read
  StopCounts stops;
  std::span<const float> state;  // running statistics to send; empty to send none
};

// A worker's client. Functions that wait throw PeerError when the job has failed or a shard stays
// unreachable. After all shards went back to an earlier step, these functions throw RolledBack
// until resume() is called.
class Client {
 public:
  // Joins the job; returns when every shard has answered. Throws PeerError if a shard cannot be
  // reached within the timeouts of `options`. Throws UsageError if shard 0 refuses this worker's
  // options or a host name is unknown. Throws JobOver if the job has already ended.
  explicit Client(const ClientOptions& options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // call leave() before; otherwise other tasks see a failed worker

  // Returns whether this worker writes the initial values of the variables.
  bool initialises() const;
  std::uint32_t incarnation() const;

  // write_variables() writes the initial values and optimizer slots of the variables, write_state()
  // the initial running statistics. initialised() reports that both are complete. The worker for
  // which initialises() is true calls these functions in this order. `values` and each slot are
  // [arena total] f32. `pushes` is the number of pushes that led to these values; every bucket
  // gets the version `pushes` + 1.
  void write_variables(std::span<const float> values, std::span<const std::span<const float>> slots,
                       std::int64_t pushes);
  void write_state(std::span<const float> state);
  void initialised(const RunPosition& start);
  // write_state() with a StateShare writes this worker's running statistics (of batch norm), for an
  // average over all workers that is weighted by share.samples. `state` holds the statistics, and
  // is empty for 0 samples. Once all workers have written their statistics,
  // read_snapshot_state(wire::kLiveSnapshot) returns the average. Each average has a higher number
  // than the average before it.
  struct StateShare {
    std::uint64_t average = 0;  // number of the average
    std::int64_t samples = 0;
  };
  void write_state(std::span<const float> state, const StateShare& share);
  // Waits until training begins, and returns the step and the place in the data where training
  // starts. If this worker does not write the initial values, the call also reports to shard 0 that
  // the worker is ready.
  RunPosition wait_start();

  // Makes the client usable again after RolledBack was thrown. Before the call, all threads must
  // have stopped using values and requests from before the roll-back. The servers then send the
  // restored values without a call of pull().
  void resume();

  // Requests the values of all buckets, except buckets that already have an unanswered push or
  // pull.
  void pull();
  // Waits until the values that the last pull or push of this bucket requested have arrived.
  void wait_values(int bucket);
  // Begins a step: the pushes that follow belong to it. One thread calls begin_step() and push().
  void begin_step(const StepInfo& info);
  // Sends the bucket's gradient, which must not change until wait_values(bucket) returns.
  void push(int bucket);
  // Ends the step. Returns the step's sums of losses, metrics and samples. Under sync these are
  // sums over all workers; with backup workers, only over the workers with gradients in the update.
  // Under other rules they are the sums of this worker alone.
  wire::StepSumsT finish_step();
  // Waits until every push and pull of this worker has been answered.
  void flush();

  // Waits for the worker's next batch and returns it; nullopt when no batches are left. In a job
  // with displacements, returns an empty range if all batches are granted and may come back: the
  // worker ends its round before the next call. One thread calls next_lease(), one call at a time.
  std::optional<SampleRange> next_lease();
  wire::JobStatusT status() const;
  // Returns the next evaluation or checkpoint that this worker is assigned, if there is one.
  std::optional<wire::AssignmentT> assignment();
  // Waits for the worker's next assignment (evaluation, checkpoint) and returns it; nullopt when
  // the job is over.
  std::optional<wire::AssignmentT> wait_assignment();
  // Reads the values and the optimizer slots of a snapshot into `values` and `slots`. `values` and
  // every span in `slots` have one f32 for every element of the parameter arena. If `slots` is
  // empty, only the values are read. Throws SnapshotWithdrawn if a server that held a part of the
  // snapshot has ended.
  void read_snapshot(std::uint64_t snapshot, std::span<float> values,
                     std::span<const std::span<float>> slots);
  // Reads the running statistics of a snapshot from shard 0: the average over the workers. Throws
  // as read_snapshot() does.
  std::vector<float> read_snapshot_state(std::uint64_t snapshot);
  // Reports that the assigned evaluation or checkpoint of this snapshot is done. `rules` is the new
  // RunPosition::rules, the state of the rules that judge evaluations; empty if the evaluation has
  // not changed it.
  void complete_assignment(std::uint64_t snapshot, std::vector<double> rules = {});
  void request_stop(StopKind kind);

  // Sends the text `mine` to all workers and returns the texts of all workers, by worker. All
  // workers must make the same sequence of exchange() calls.
  std::vector<std::string> exchange(std::string_view mine);
  // Returns the number of the last exchange(). Exchanges are numbered in the order of the calls,
  // equally on all workers.
  std::uint64_t exchanges() const;

  // Sets the step number that this worker's heartbeats report. If the worker is lost, the error
  // messages of other tasks show this number.
  void report_step(std::int64_t step) noexcept;
  // Leaves the job after the last step. Returns when shard 0 has confirmed this, or after a
  // timeout, since shard 0 may end before it confirms. Throws RolledBack if the servers went back
  // to an earlier step, so that the job is not over.
  void leave();
  // Reports to the other tasks that this worker ends because of `reason`. `ends_job`: the other
  // workers would fail for the same reason, so the job must end.
  void fail(std::string_view reason, bool ends_job) noexcept;
  // Wakes all threads that wait in this client. Their calls throw PeerError with this reason.
  void abort(std::string_view reason) noexcept;

  // Counters of the client's pushes and pulls.
  struct Traffic {
    std::int64_t bytes_pushed = 0;
    std::int64_t bytes_pulled = 0;
    double peers_wait_seconds = 0.0;  // how long shards held back answers to wait for other workers
    int shards_in_segment = 0;        // shards that map this worker's memory
    DroppedSteps dropped;             // steps with pushes that came too late
  };
  Traffic traffic() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace syncopate::ps
