// Variables on parameter servers; this task is one worker. Values arrive in the arena as answers to
// the pushes of the step before, gradients leave as backward completes them; what a step waits for
// is the servers' consistency rule. Under `sync` all workers keep step, and the trainer's usual
// loop drives them; else each trains what shard 0 hands out (asynchronous_job.h).
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "models/optim/optimizer.h"
#include "ps/client/client.h"
#include "ps/net/segment.h"
#include "ps/shard/placement.h"
#include "strategies/asynchronous_job.h"
#include "strategies/job_messages.h"
#include "strategies/restore.h"
#include "strategies/served_worker.h"
#include "strategies/strategy.h"

namespace syncopate {
namespace {

// Frames of about 1 MB: smaller ones reach a part of the rate, larger ones hide less.
constexpr std::int64_t kMessageBytes = std::int64_t{1} << 20;

ps::Placement place(const StrategyOptions& options, const ArenaLayout& layout) {
  return ps::place_variables(layout,
                             {.servers = std::max(1, options.parameter_server.cluster.num_servers),
                              .partition = options.parameter_server.partition,
                              .message_bytes = std::min(options.bucket_bytes, kMessageBytes)});
}

class ParameterServer final : public Strategy {
 public:
  ParameterServer(const StrategyOptions& options, const Graph& graph)
      : options_(options),
        graph_(graph),
        in_step_(keeps_step(options.consistency)),
        optimizer_(make_optimizer(options.optimizer)) {
    build_replica();
    meet();
  }

  std::span<Replica> replicas() noexcept override { return {&replica_, 1}; }
  int replicas_in_sync() const noexcept override { return input_shard().total; }
  InputShard input_shard() const noexcept override {
    if (!in_step_) return {};
    return {.first = cluster().index, .count = 1, .total = cluster().world_size};
  }
  bool is_chief() const noexcept override { return client_->initialises(); }
  AsynchronousJob* asynchronous_job(int /*replica*/) override { return job_.get(); }

  void for_each_replica(const std::function<void(Replica&)>& task) override { task(replica_); }

  std::vector<double> gather(std::span<const double> mine) override {
    std::vector<double> all;
    for (const std::string& text : client_->exchange(text_of(std::as_bytes(mine)))) {
      check(text.size() == mine.size_bytes(), "everybody gathers as many numbers");
      all.resize(all.size() + mine.size());
      std::memcpy(all.data() + all.size() - mine.size(), text.data(), text.size());
    }
    return all;
  }

  void broadcast(std::span<std::byte> bytes) override {
    // Whoever keeps step with nobody hears where training stands with each batch it is given.
    if (!in_step_) return;
    const auto texts = client_->exchange(is_chief() ? text_of(bytes) : std::string());
    check(texts.front().size() == bytes.size(), "the chief's bytes are as long as everybody's");
    if (!bytes.empty()) std::memcpy(bytes.data(), texts.front().data(), bytes.size());
  }

  void agree() override;
  Snapshot snapshot() override;
  void restore(const Snapshot& saved) override;
  void begin(const ps::RunPosition& start) override;
  void abort(std::string_view reason) noexcept override { client_->abort(reason); }
  void leave() override { client_->leave(); }
  void fail(std::string_view reason) noexcept override { client_->fail(reason); }

 private:
  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  const ClusterSpec& cluster() const noexcept { return options_.parameter_server.cluster; }
  void build_replica();
  void meet();
  // The values are those after the last step.
  void settle();
  void take_running_statistics();
  std::vector<Snapshot::Slot> blank_slots() const;

  const StrategyOptions options_;
  const Graph& graph_;
  const bool in_step_;
  const std::unique_ptr<Optimizer> optimizer_;
  bool has_begun_ = false;
  std::unique_ptr<ps::SegmentOwner> segment_;
  std::vector<Snapshot::Slot> restored_slots_;  // the chief's, until training begins
  StepContext context_;
  // Below the replica, which it writes to; above what uses it.
  Replica replica_;
  std::unique_ptr<ps::Client> client_;
  std::unique_ptr<AsynchronousJob> job_;
};

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
  replica_.backend = make_backend(backend_options(options_, 0));
  replica_.arena =
      std::make_unique<ParameterArena>(layout, std::move(placement.buckets), &values, &gradients);
  replica_.state = std::make_unique<StateBlock>(graph_.state_layout());
  fill_initial_values(graph_, options_.seed, *replica_.arena);
  fill_initial_state(graph_, *replica_.state);
  replica_.model = replica_.backend->compile(
      graph_, *replica_.arena, *replica_.state,
      {.mode = Mode::kTrain, .batch_size = options_.batch_size_per_replica});
}

void ParameterServer::meet() {
  const ParameterServerOptions& servers = options_.parameter_server;
  const ps::Placement placement = place(options_, graph_.parameter_layout());
  ps::ClientOptions client{.index = cluster().index,
                           .workers = cluster().world_size,
                           .servers = cluster().num_servers,
                           .rendezvous = *cluster().rendezvous,
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
                           .server_timeout = servers.server_patience,
                           .asked_to_stop = servers.asked_to_stop};
  client_ = std::make_unique<ps::Client>(client);
  replica_.variables = make_served_variables(replica_, *client_, context_, options_);
  if (!in_step_) job_ = make_served_job(replica_, *client_, context_, options_);
}

std::vector<Snapshot::Slot> ParameterServer::blank_slots() const {
  std::vector<Snapshot::Slot> slots;
  for (const std::string_view name : optimizer_->slot_names()) {
    slots.push_back(
        {std::string(name), make_host_tensor(replica_.arena->values().shape(), DType::kF32)});
  }
  return slots;
}

void ParameterServer::settle() {
  if (!has_begun_) return;
  client_->flush();
  replica_.arena->bump_all_versions();
}

void ParameterServer::agree() {
  // The answers to the last step's pushes may still be on their way, and what they bring is to be
  // measured.
  settle();
  if (replicas_in_sync() == 1) return;
  // The arithmetic of the synchronous strategies, so that the bits are theirs.
  const std::span<float> state = replica_.state->values.f32();
  const double own = static_cast<double>(replica_.samples_in_statistics);
  const std::vector<double> weights = gather({&own, 1});
  double total = 0.0;
  for (const double weight : weights) total += weight;
  if (state.empty() || total == 0.0) return;
  const auto texts = client_->exchange(text_of(std::as_bytes(state)));
  std::vector<std::vector<float>> all;
  for (const std::string& text : texts) {
    all.emplace_back(text.size() / sizeof(float));
    std::memcpy(all.back().data(), text.data(), all.back().size() * sizeof(float));
    check(all.back().size() == state.size(), "everybody has the same running statistics");
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    double sum = 0.0;
    for (std::size_t w = 0; w < all.size(); ++w) {
      sum += weights[w] * static_cast<double>(all[w][i]);
    }
    state[i] = static_cast<float>(sum / total);
  }
  replica_.samples_in_statistics = 0;
}

Snapshot ParameterServer::snapshot() {
  Snapshot now{replica_.arena->values(), {}, replica_.state->values};
  if (!has_begun_ || !in_step_) {
    now.slots = blank_slots();
    return now;
  }
  settle();
  if (!is_chief()) return now;
  now.slots = blank_slots();
  std::vector<std::span<float>> slots;
  for (const Snapshot::Slot& slot : now.slots) slots.push_back(slot.values.f32());
  // Nobody updates while this worker has not pushed, so what the servers hold is of this step.
  const Tensor values = make_host_tensor(now.values.shape(), DType::kF32);
  client_->read_snapshot(ps::wire::kLiveSnapshot, values.f32(), slots);
  return now;
}

void ParameterServer::restore(const Snapshot& saved) {
  check(!has_begun_, "variables on servers are written before training begins");
  if (is_chief()) {
    check_snapshot(saved, snapshot());
    std::ranges::copy(saved.values.f32(), replica_.arena->values().f32().begin());
    std::ranges::copy(saved.state.f32(), replica_.state->values.f32().begin());
    restored_slots_ = saved.slots;
    replica_.arena->bump_all_versions();
  }
  if (in_step_) broadcast(replica_.state->values.bytes());
}

// Whoever keeps step has the chief's by restore(); another one's are the average of all workers',
// or what training starts from: with the graph's own it would spoil the average.
void ParameterServer::take_running_statistics() {
  const std::span<float> own = replica_.state->values.f32();
  if (in_step_ || is_chief() || own.empty()) return;
  const std::vector<float> all = client_->read_snapshot_state(ps::wire::kLiveSnapshot);
  check(all.size() == own.size(), "servers hold as many running statistics as the network has");
  std::ranges::copy(all, own.begin());
}

void ParameterServer::begin(const ps::RunPosition& start) {
  if (has_begun_) {
    // All servers went back: the values of this point come by themselves.
    client_->resume();
    client_->flush();
    take_running_statistics();
    replica_.arena->bump_all_versions();
    return;
  }
  if (is_chief()) {
    std::vector<std::span<const float>> slots;
    for (const Snapshot::Slot& slot : restored_slots_) slots.emplace_back(slot.values.f32());
    client_->write_variables(replica_.arena->values().f32(), slots, start.step);
    client_->write_state(replica_.state->values.f32());
    client_->initialised(start);
    restored_slots_.clear();
  }
  client_->report_step(client_->wait_start().step);
  take_running_statistics();
  client_->pull();
  client_->flush();
  replica_.arena->bump_all_versions();
  has_begun_ = true;
}

}  // namespace

std::unique_ptr<Strategy> make_parameter_server(const StrategyOptions& options,
                                                const Graph& graph) {
  if (options.replicas != 1) {
    throw UsageError("--replicas " + std::to_string(options.replicas) +
                     ": a worker of --strategy parameter-server has one replica; start more "
                     "workers");
  }
  const ClusterSpec& cluster = options.parameter_server.cluster;
  if (cluster.num_servers < 1 || !cluster.rendezvous) {
    throw UsageError(
        "--strategy parameter-server: no servers; start the job with syncopate launch --servers M "
        "--workers N -- train ..., or list ps tasks in TF_CONFIG");
  }
  return std::make_unique<ParameterServer>(options, graph);
}

}  // namespace syncopate
