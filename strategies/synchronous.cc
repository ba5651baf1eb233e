#include "strategies/synchronous.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/backend/model.h"
#include "models/base/errors.h"
#include "models/base/random.h"
#include "strategies/step_trailer.h"

namespace syncopate {
namespace {

// Sums batch statistics over all ranks by the host's collective, in rank order. One thread only.
// The replica outlives it.
class GatheredStatistics final : public StatisticsReducer {
 public:
  explicit GatheredStatistics(const Replica& replica) : replica_(replica) {}

  void sum(std::span<double> values) override {
    Collective& collective = *replica_.collective;
    const auto n = static_cast<std::size_t>(collective.size());
    if (n == 1) return;
    const Span span(replica_.trace, TraceKind::kCommunication);
    all_.resize(n * values.size());
    collective.all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(all_)));
    std::copy_n(all_.begin(), values.size(), values.begin());
    for (std::size_t r = 1; r < n; ++r) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += all_[r * values.size() + i];
    }
  }

 private:
  const Replica& replica_;
  std::vector<double> all_;
};

std::uint64_t hash_bytes(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

CollectiveOptions collective_options(const StrategyOptions& options, const Graph& graph) {
  return {.name = options.collective,
          .num_local_ranks = options.replicas,
          .block_elements = kTrailerElements + graph.parameter_layout().total(),
          .progress = options.membership == nullptr
                          ? PeerProgress()
                          : [tasks = options.membership] { return tasks->lowest_step(); },
          .membership = options.membership,
          .transport = options.transport,
          .link = options.link};
}

SynchronousStrategy::SynchronousStrategy(const StrategyOptions& options, const Graph& graph,
                                         JoinedReplicas joined, const Tensor* shared_values)
    : options_(options),
      graph_(graph),
      shares_values_(shared_values != nullptr),
      updates_on_device_(joined.updates_on_device),
      team_(static_cast<int>(joined.collectives.size()), "replica") {
  replicas_.reserve(joined.collectives.size());
  for (std::size_t i = 0; i < joined.collectives.size(); ++i) {
    Replica& replica = replicas_.emplace_back();
    replica.index = static_cast<int>(i);
    replica.collective = std::move(joined.collectives[i]);
    if (!joined.on_device.empty()) replica.device_collective = std::move(joined.on_device[i]);
    replica.backend = joined.backends.empty()
                          ? make_backend(backend_options(options_, replica.index))
                          : std::move(joined.backends[i]);
    build(replica, shared_values, joined.gradients);
  }
  if (joined.on_device.empty()) return;
  for_each_replica([](Replica& replica) {
    replica.device_collective->join(
        [&](std::span<std::byte> bytes) { replica.collective->broadcast(bytes, 0); });
  });
}

// Lets all replicas leave their device collectives concurrently, since each replica may wait for
// the others of its machine.
SynchronousStrategy::~SynchronousStrategy() {
  if (replicas_.empty() || replicas_.front().device_collective == nullptr) return;
  team_.run([&](int i) { replicas_[static_cast<std::size_t>(i)].device_collective->leave(); });
}

void SynchronousStrategy::build(Replica& replica, const Tensor* shared_values,
                                const std::optional<Tensor>& own_gradients) {
  const ArenaLayout layout = graph_.parameter_layout();
  const Tensor& block = replica.collective->block();
  const Tensor gradients =
      own_gradients ? *own_gradients : block.rows(kTrailerElements, block.num_elements());
  replica.micro_batches = options_.micro_batches;
  replica.arena = std::make_unique<ParameterArena>(
      layout, plan_buckets(layout, options_.bucket_bytes), shared_values, &gradients);
  replica.state = std::make_unique<StateBlock>(graph_.state_layout());
  fill_initial_values(graph_, options_.seed, *replica.arena);
  fill_initial_state(graph_, *replica.state);
  StatisticsReducer* reducer = nullptr;
  if (options_.batch_norm == BatchNormStatistics::kSync && replica.collective->size() > 1) {
    statistics_.push_back(std::make_unique<GatheredStatistics>(replica));
    reducer = statistics_.back().get();
  }
  replica.model = replica.backend->compile(graph_, *replica.arena, *replica.state,
                                           {.mode = Mode::kTrain,
                                            .batch_size = micro_batch_size(options_),
                                            .statistics = reducer,
                                            .updates_on_device = updates_on_device_,
                                            .device_collective = replica.device_collective.get()});
}

std::string SynchronousStrategy::own_name() const {
  if (options_.membership == nullptr) return "a replica of this process";
  const Membership& membership = *options_.membership;
  const Member& me = membership.members()[static_cast<std::size_t>(membership.index())];
  return fmt::format("rank {} (host {}, pid {})", me.index, me.host, me.pid);
}

InputShard SynchronousStrategy::input_shard() const noexcept {
  return {.first = first_rank(),
          .count = static_cast<int>(replicas_.size()),
          .total = replicas_.front().collective->size()};
}

void SynchronousStrategy::for_each_replica(const std::function<void(Replica&)>& task) {
  team_.run([&](int i) { task(replicas_[static_cast<std::size_t>(i)]); },
            [&](const std::exception_ptr& error) {
              abort(fmt::format("{} failed: {}", own_name(), message_of(error)));
            });
}

std::vector<double> SynchronousStrategy::gather(std::span<const double> mine) {
  const auto n = static_cast<std::size_t>(replicas_.front().collective->size());
  std::vector<int> first_ranks{0};  // by task: the first replica's rank
  if (options_.membership != nullptr) {
    first_ranks.clear();
    for (const Member& member : options_.membership->members()) {
      first_ranks.push_back(member.first_replica);
    }
  }
  constexpr std::size_t kMost = Collective::kMostGatheredBytes / sizeof(double);
  std::vector<double> by_task(first_ranks.size() * mine.size());
  for_each_replica([&](Replica& replica) {
    std::vector<double> own(kMost);
    std::vector<double> all;
    for (std::size_t begin = 0; begin < mine.size(); begin += kMost) {
      const std::size_t count = std::min(kMost, mine.size() - begin);
      std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(begin), count, own.begin());
      all.resize(n * count);
      replica.collective->all_gather(std::as_bytes(std::span(own).first(count)),
                                     std::as_writable_bytes(std::span(all)));
      if (replica.index != 0) continue;
      for (std::size_t task = 0; task < first_ranks.size(); ++task) {
        const auto from = static_cast<std::size_t>(first_ranks[task]) * count;
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), count,
                    by_task.begin() + static_cast<std::ptrdiff_t>(task * mine.size() + begin));
      }
    }
  });
  return by_task;
}

void SynchronousStrategy::broadcast(std::span<std::byte> bytes) {
  for_each_replica([&](Replica& replica) {
    std::vector<std::byte> unread(replica.index == 0 ? 0 : bytes.size());
    replica.collective->broadcast(replica.index == 0 ? bytes : std::span(unread), 0);
  });
}

void SynchronousStrategy::agree() {
  if (replicas_in_sync() == 1) return;
  for_each_replica([&](Replica& replica) { bring_to_host(replica); });
  // Synchronized batch norm already keeps bit-equal running statistics on all replicas.
  if (options_.batch_norm == BatchNormStatistics::kLocal) {
    for_each_replica([&](Replica& replica) { average_statistics(replica); });
  }
  check_same_values("weights");
}

Tensor SynchronousStrategy::average(const Replica& replica) {
  bring_to_host(replica);
  return average_of(slots_of(replica));
}

void SynchronousStrategy::average_statistics(Replica& replica) {
  const std::span<float> state = replica.state->values.f32();
  if (state.empty()) return;
  Collective& collective = *replica.collective;
  const auto n = static_cast<std::size_t>(collective.size());
  const auto own = static_cast<double>(replica.samples_in_statistics);
  std::vector<double> weights(n);
  collective.all_gather(std::as_bytes(std::span(&own, 1)),
                        std::as_writable_bytes(std::span(weights)));
  if (std::ranges::all_of(weights, [](double weight) { return weight == 0.0; })) return;
  constexpr std::size_t kMost = Collective::kMostGatheredBytes / sizeof(float);
  std::vector<float> all;
  for (std::size_t begin = 0; begin < state.size(); begin += kMost) {
    const std::span<float> part = state.subspan(begin, std::min(kMost, state.size() - begin));
    all.resize(n * part.size());
    collective.all_gather(std::as_bytes(part), std::as_writable_bytes(std::span(all)));
    average_running_statistics(weights, all, part);
  }
  // The device's copy of the statistics is outdated now. The device fetches statistics together
  // with values.
  if (updates_on_device_) replica.arena->bump_all_versions();
  replica.samples_in_statistics = 0;
}

void SynchronousStrategy::check_same_values(std::string_view what) {
  if (replicas_in_sync() == 1 || shares_values_) return;
  for_each_replica([&](Replica& replica) {
    std::uint64_t own = hash_bytes(replica.arena->values());
    for (const Snapshot::Slot& slot : slots_of(replica)) own = own * 31 + hash_bytes(slot.values);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(replica.collective->size()));
    replica.collective->all_gather(std::as_bytes(std::span(&own, 1)),
                                   std::as_writable_bytes(std::span(all)));
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      throw PeerError(
          fmt::format("the {} of replica {} differ from those of replica 0; start all tasks with "
                      "the same program, --model, --data and --seed",
                      what, r));
    }
  });
}

void SynchronousStrategy::bring_to_host(const Replica& replica) const {
  std::vector<Tensor> slots;
  for (const Snapshot::Slot& slot : slots_of(replica)) slots.push_back(slot.values);
  replica.backend->to_host(*replica.arena, slots);
}

Snapshot SynchronousStrategy::snapshot() {
  const Replica& replica = replicas_.front();
  bring_to_host(replica);
  return {replica.arena->values(), slots_of(replica), replica.state->values,
          replica.backend->loss_scale(*replica.arena)};
}

void SynchronousStrategy::restore(const Snapshot& saved) {
  const Snapshot live = snapshot();
  check_snapshot(saved, live);
  if (is_chief()) copy_snapshot(saved, live);
  for_each_replica([&](Replica& replica) {
    Collective& collective = *replica.collective;
    // A later download from the device would overwrite the restored values.
    bring_to_host(replica);
    // A block of values that replicas share belongs to the chief's task, which filled it above.
    if (!shares_values_) {
      collective.broadcast(replica.arena->values().bytes(), 0);
      for (const Snapshot::Slot& slot : slots_of(replica)) {
        collective.broadcast(slot.values.bytes(), 0);
      }
    }
    collective.broadcast(replica.state->values.bytes(), 0);
    restore_loss_scale(replica, saved);
    replica.arena->bump_all_versions();
    replica.samples_in_statistics = 0;
  });
}

void SynchronousStrategy::restore_loss_scale(Replica& replica, const Snapshot& saved) {
  const LossScaleState own = saved.loss_scale.value_or(LossScaleState{});
  // The chief broadcasts whether its snapshot has a loss scale, and the scale.
  std::array<double, 4> sent{saved.loss_scale ? 1.0 : 0.0, static_cast<double>(own.scale),
                             static_cast<double>(own.good_steps),
                             static_cast<double>(own.skipped_steps)};
  replica.collective->broadcast(std::as_writable_bytes(std::span(sent)), 0);
  if (sent[0] == 0.0) return;
  replica.backend->set_loss_scale(*replica.arena, {.scale = static_cast<float>(sent[1]),
                                                   .good_steps = std::llround(sent[2]),
                                                   .skipped_steps = std::llround(sent[3])});
}

void SynchronousStrategy::begin(const ps::RunPosition& /*start*/) {
  check_same_values("initial values");
}

void SynchronousStrategy::leave() {
  if (options_.membership != nullptr) options_.membership->leave();
}

void SynchronousStrategy::fail(std::string_view reason, bool /*ends_job*/) noexcept {
  if (options_.membership != nullptr) options_.membership->fail(reason);
}

void SynchronousStrategy::abort(std::string_view reason) noexcept {
  for (Replica& replica : replicas_) {
    replica.collective->abort(reason);
    if (replica.device_collective != nullptr) replica.device_collective->abort(reason);
  }
}

}  // namespace syncopate
