// --strategy parameter-server: the variables are on servers, and this task is one worker. Values
// arrive in the replica's arena as answers to the pushes of the step before, and gradients leave
// while the backward pass completes them. The servers' consistency rule decides what a step waits
// for. Under a synchronous rule the loop for synchronous jobs drives the workers; otherwise each
// worker trains the batches that shard 0 hands out (asynchronous_job.h).
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/net/segment.h"
#include "ps/shard/placement.h"
#include "strategies/asynchronous_job.h"
#include "strategies/coordinated_worker.h"
#include "strategies/snapshot.h"

namespace syncopate {
namespace {

// The most bytes of running statistics that shard 0 keeps until it can add them.
constexpr std::size_t kMostSharesBytes = std::size_t{64} << 20;

ps::Placement place(const StrategyOptions& options, const ArenaLayout& layout) {
  return ps::place_variables(layout,
                             {.servers = std::max(1, options.parameter_server.cluster.num_servers),
                              .partition = options.parameter_server.partition,
                              .message_bytes = std::min(options.bucket_bytes, ps::kMessageBytes)});
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The base of synchronous and asynchronous workers of parameter servers.
class ParameterServer : public Strategy {
 public:
  std::span<Replica> replicas() noexcept override { return {&replica_, 1}; }
  bool is_chief() const noexcept override { return client_->initialises(); }
  void for_each_replica(const std::function<void(Replica&)>& task) override { task(replica_); }
  void restore(const Snapshot& saved) override;
  void begin(const ps::RunPosition& start) override;
  void leave() override { client_->leave(); }
  void fail(std::string_view reason, bool ends_job) noexcept override {
    client_->fail(reason, ends_job);
  }
  void abort(std::string_view reason) noexcept override { client_->abort(reason); }

 protected:
  // Builds the replica and joins the job. The derived class adds Replica::variables.
  ParameterServer(const StrategyOptions& options, const Graph& graph);

  const StrategyOptions& options() const noexcept { return options_; }
  const ClusterSpec& cluster() const noexcept { return options_.parameter_server.cluster; }
  Replica& replica() noexcept { return replica_; }
  ps::Client& client() noexcept { return *client_; }
  bool has_begun() const noexcept { return has_begun_; }
  // Returns values and running statistics of the replica, and slots of zeros.
  Snapshot local_snapshot() const;

 private:
  void build_replica();
  void join_job();

  const StrategyOptions options_;
  const Graph& graph_;
  bool has_begun_ = false;
  std::unique_ptr<ps::SegmentOwner> segment_;
  std::vector<Snapshot::Slot> restored_slots_;  // the chief's restored slots, until training begins
  // The client writes to the replica's memory, so it is declared after the replica.
  Replica replica_;
  std::unique_ptr<ps::Client> client_;
};

ParameterServer::ParameterServer(const StrategyOptions& options, const Graph& graph)
    : options_(options), graph_(graph) {
  build_replica();
  join_job();
}

void ParameterServer::build_replica() {
  const ArenaLayout layout = graph_.parameter_layout();
  ps::Placement placement = place(options_, layout);
  Tensor values;
  Tensor gradients;
  if (options_.transport != Transport::kTcp) {
    segment_ = std::make_unique<ps::SegmentOwner>(layout.total(), cluster().nonce);
    values = segment_->values();
    gradients = segment_->gradients();
  } else {
    values = make_host_tensor({layout.total()}, DType::kF32);
    gradients = make_host_tensor({layout.total()}, DType::kF32);
  }
  replica_.micro_batches = options_.micro_batches;
  replica_.backend = make_backend(backend_options(options_, 0));
  replica_.arena =
      std::make_unique<ParameterArena>(layout, std::move(placement.buckets), &values, &gradients);
  replica_.state = std::make_unique<StateBlock>(graph_.state_layout());
  fill_initial_values(graph_, options_.seed, *replica_.arena);
  fill_initial_state(graph_, *replica_.state);
  replica_.model =
      replica_.backend->compile(graph_, *replica_.arena, *replica_.state,
                                {.mode = Mode::kTrain, .batch_size = micro_batch_size(options_)});
}

void ParameterServer::join_job() {
  const ParameterServerOptions& servers = options_.parameter_server;
  const ps::Placement placement = place(options_, graph_.parameter_layout());
  ps::ClientOptions client{.index = cluster().index,
                           .workers = cluster().world_size,
                           .servers = cluster().num_servers,
                           .rendezvous = *cluster().rendezvous.endpoint,
                           .nonce = cluster().nonce,
                           .declaration = declare_job(options_, graph_, placement.buckets,
                                                      placement.owner, cluster().world_size),
                           .compression = servers.compression,
                           .values = replica_.arena->values().f32(),
                           .gradients = replica_.arena->gradients().f32(),
                           .segment = segment_ == nullptr ? "" : segment_->name(),
                           .requires_segment = options_.transport == Transport::kShm,
                           .rendezvous_timeout = servers.rendezvous_timeout,
                           .peer_timeout = servers.peer_timeout,
                           .insists_on_peer_timeout = servers.insists_on_peer_timeout,
                           .server_timeout = servers.server_timeout,
                           .asked_to_stop = servers.asked_to_stop};
  client_ = std::make_unique<ps::Client>(client);
  report_meeting(cluster());
}

Snapshot ParameterServer::local_snapshot() const {
  const Tensor& values = replica_.arena->values();
  Snapshot local{values,
                 OptimizerSlots(make_optimizer_of_shards(options_), values.num_elements()).named(),
                 replica_.state->values};
  remove_collected(local.slots);
  return local;
}

void ParameterServer::restore(const Snapshot& saved) {
  check(!has_begun_, "variables on servers are written before training begins");
  if (!is_chief()) return;
  check_snapshot(saved, snapshot());
  std::ranges::copy(saved.values.f32(), replica_.arena->values().f32().begin());
  std::ranges::copy(saved.state.f32(), replica_.state->values.f32().begin());
  restored_slots_ = saved.slots;
  replica_.arena->bump_all_versions();
}

void ParameterServer::begin(const ps::RunPosition& start) {
  if (has_begun_) {
    // After a rollback, all servers send the values of an earlier step without a request.
    client_->resume();
    client_->flush();
    replica_.arena->bump_all_versions();
    return;
  }
  if (is_chief()) {
    std::vector<std::span<const float>> slots;
    for (const Snapshot::Slot& slot : restored_slots_) slots.emplace_back(slot.values.f32());
    const std::int64_t gradients = ps::gradients_per_update(options_.consistency);
    Tensor collected;  // the servers have one slot more than a checkpoint
    if (gradients > 1 && !slots.empty()) {
      collected = make_host_tensor(replica_.arena->values().shape(), DType::kF32);
      slots.emplace_back(collected.f32());
    }
    const bool displaces = pushes_displacements(options_.local);
    client_->write_variables(replica_.arena->values().f32(), slots,
                             displaces ? start.pushes : start.step * gradients);
    client_->write_state(replica_.state->values.f32());
    client_->initialised(start);
    restored_slots_.clear();
  }
  client_->report_step(client_->wait_start().step);
  client_->pull();
  client_->flush();
  replica_.arena->bump_all_versions();
  has_begun_ = true;
}

// The transport of a synchronous worker. Where answers are rounded to bf16, the worker computes
// with rounded values, and evaluates and saves the exact ones, which it reads from the servers.
class SynchronousWorker final : public ServedWorker {
 public:
  SynchronousWorker(ps::Client& client, Replica& replica, ps::ValuesFormat format)
      : ServedWorker(client), replica_(replica), format_(format) {}

  // Makes the replica's values exact. All answers have arrived, and no server updates them before
  // this worker has pushed again.
  void read_exact_values() {
    if (format_ == ps::ValuesFormat::kF32 || has_exact_values_) return;
    client().read_snapshot(ps::wire::kLiveSnapshot, replica_.arena->values().f32(), {});
    has_exact_values_ = true;
  }
  // Called when the servers have sent values again.
  void note_answers() noexcept { has_exact_values_ = false; }

  void wait_values(BucketId bucket) override {
    ServedWorker::wait_values(bucket);
    if (!has_exact_values_) return;
    const Bucket& range = replica_.arena->buckets()[static_cast<std::size_t>(bucket)];
    ps::round_to(format_, replica_.arena->values().f32().subspan(
                              static_cast<std::size_t>(range.begin),
                              static_cast<std::size_t>(range.end - range.begin)));
  }
  void begin_step(ps::StepInfo step) override {
    note_answers();  // the values of all buckets were waited for
    ServedWorker::begin_step(step);
  }

 private:
  Replica& replica_;
  const ps::ValuesFormat format_;
  bool has_exact_values_ = false;
};

class SynchronousParameterServer final : public ParameterServer, public SynchronousJob {
 public:
  SynchronousParameterServer(const StrategyOptions& options, const Graph& graph)
      : ParameterServer(options, graph),
        worker_(client(), replica(), ps::values_format(options.parameter_server.compression)) {
    replica().variables = make_worker_variables(replica(), worker_, options);
  }

  int replicas_in_sync() const noexcept override { return cluster().world_size; }
  InputShard input_shard() const noexcept override {
    return {.first = cluster().index, .count = 1, .total = cluster().world_size};
  }
  Job job(int /*replica*/) noexcept override { return this; }
  Snapshot snapshot() override;
  void begin(const ps::RunPosition& start) override {
    ParameterServer::begin(start);
    worker_.note_answers();
  }
  void restore(const Snapshot& saved) override {
    ParameterServer::restore(saved);
    broadcast(replica().state->values.bytes());
  }

  std::vector<double> gather(std::span<const double> mine) override;
  void broadcast(std::span<std::byte> bytes) override {
    const auto texts = client().exchange(is_chief() ? as_text(bytes) : std::string());
    check(texts.front().size() == bytes.size(), "all tasks broadcast the same number of bytes");
    if (!bytes.empty()) std::memcpy(bytes.data(), texts.front().data(), bytes.size());
  }
  void agree() override;
  Tensor average(const Replica& replica) override;

 private:
  void read_slots(const Snapshot& into);
  // Waits until the replica's values are exactly those after the last step.
  void wait_for_answers() {
    if (!has_begun()) return;
    client().flush();
    worker_.read_exact_values();
    replica().arena->bump_all_versions();
  }

  SynchronousWorker worker_;
};

std::vector<double> SynchronousParameterServer::gather(std::span<const double> mine) {
  std::vector<double> all;
  for (const std::string& text : client().exchange(as_text(std::as_bytes(mine)))) {
    check(text.size() == mine.size_bytes(), "all tasks gather equally many numbers");
    all.resize(all.size() + mine.size());
    if (!text.empty()) std::memcpy(&all[all.size() - mine.size()], text.data(), text.size());
  }
  return all;
}

void SynchronousParameterServer::agree() {
  // The values will be evaluated, and answers to the last pushes may still be on their way.
  wait_for_answers();
  if (replicas_in_sync() == 1) return;
  const std::span<float> state = replica().state->values.f32();
  if (state.empty()) return;
  const std::int64_t samples = replica().samples_in_statistics;
  const ps::Client::StateShare share{.average = client().exchanges() + 1, .samples = samples};
  // Shard 0 keeps the share of a worker until the shares of all lower workers are written, so that
  // it adds them in order. Workers write in groups, which bounds what it keeps.
  const int group = static_cast<int>(std::clamp<std::size_t>(
      kMostSharesBytes / state.size_bytes(), 1, static_cast<std::size_t>(replicas_in_sync())));
  bool has_trained = false;
  for (int first = 0; first < replicas_in_sync(); first += group) {
    const bool is_due = cluster().index >= first && cluster().index < first + group;
    if (is_due) client().write_state(samples == 0 ? std::span<float>() : state, share);
    // Ends when the whole group has written.
    for (const std::string& text : client().exchange(samples == 0 ? "" : "trained")) {
      has_trained = has_trained || !text.empty();
    }
  }
  if (!has_trained) return;
  const std::vector<float> average = client().read_snapshot_state(ps::wire::kLiveSnapshot);
  check(average.size() == state.size(), "all workers have equally many running statistics");
  std::ranges::copy(average, state.begin());
  replica().samples_in_statistics = 0;
}

Snapshot SynchronousParameterServer::snapshot() {
  if (!has_begun()) return local_snapshot();
  wait_for_answers();
  if (!is_chief()) return {replica().arena->values(), {}, replica().state->values};
  Snapshot now = local_snapshot();
  read_slots(now);
  return now;
}

// Live slots can be read: the servers apply no update until this worker has pushed, so their slots
// belong to the same step as the worker's values.
void SynchronousParameterServer::read_slots(const Snapshot& into) {
  const Tensor unused_values = make_host_tensor(into.values.shape(), DType::kF32);
  client().read_snapshot(ps::wire::kLiveSnapshot, unused_values.f32(), memory_of(into.slots));
}

Tensor SynchronousParameterServer::average(const Replica& /*replica*/) {
  const Snapshot now = local_snapshot();
  if (has_begun()) read_slots(now);
  return average_of(now.slots);
}

class AsynchronousParameterServer final : public ParameterServer {
 public:
  AsynchronousParameterServer(const StrategyOptions& given, const Graph& graph)
      : ParameterServer(given, graph), worker_(replica(), client(), options()) {
    replica().variables = make_worker_variables(replica(), worker_, options());
  }

  int replicas_in_sync() const noexcept override { return 1; }
  InputShard input_shard() const noexcept override { return {}; }
  Job job(int /*replica*/) noexcept override { return &worker_; }
  Snapshot snapshot() override { return local_snapshot(); }
  void begin(const ps::RunPosition& start) override;

 private:
  void drop_round();

  LeasedWorker worker_;
};

// The servers have gone back to an earlier step. A round that had begun is void, and its last step
// may have written over the values that the servers sent.
void AsynchronousParameterServer::drop_round() {
  worker_.drop_batches();
  if (!pushes_displacements(options().local)) return;
  replica().variables = make_worker_variables(replica(), worker_, options());
  client().pull();
  client().flush();
  replica().arena->bump_all_versions();
}

// A worker other than the chief takes over the servers' running statistics. They are the average of
// all workers, or come from a checkpoint. The network's initial ones would distort the next
// average.
void AsynchronousParameterServer::begin(const ps::RunPosition& start) {
  const bool was_rolled_back = has_begun();
  ParameterServer::begin(start);
  if (was_rolled_back) drop_round();
  const std::span<float> own = replica().state->values.f32();
  if (is_chief() || own.empty()) return;
  const std::vector<float> all = client().read_snapshot_state(ps::wire::kLiveSnapshot);
  check(all.size() == own.size(), "servers hold as many running statistics as the network has");
  std::ranges::copy(all, own.begin());
  replica().arena->bump_all_versions();
}

}  // namespace

std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options,
                                                const Graph& graph) {
  const ClusterSpec& cluster = options.parameter_server.cluster;
  if (cluster.num_servers < 1 || !cluster.rendezvous.endpoint) {
    throw UsageError(
        "--strategy parameter-server: no servers; start the job with syncopate launch --servers M "
        "--workers N -- train ..., or list ps tasks in TF_CONFIG");
  }
  if (is_synchronous(options.consistency)) {
    return std::make_unique<SynchronousParameterServer>(options, graph);
  }
  return std::make_unique<AsynchronousParameterServer>(options, graph);
}

}  // namespace syncopate
