#include "strategies/synchronous.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "strategies/gathered_statistics.h"
#include "strategies/restore.h"
#include "strategies/step_trailer.h"

namespace syncopate {
namespace {

template <typename Element>
std::span<const std::byte> bytes_of(std::span<Element> elements) {
  return std::as_bytes(elements);
}

std::uint64_t hash_bytes(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string describe(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

}  // namespace

CollectiveOptions collective_options(const StrategyOptions& options, const Graph& graph) {
  return {.name = options.collective,
          .num_local_ranks = options.replicas,
          .block_elements = kTrailerElements + graph.parameter_layout().total(),
          .membership = options.membership,
          .transport = options.transport,
          .link = options.link};
}

Synchronous::Synchronous(const StrategyOptions& options, const Graph& graph, JoinedReplicas joined,
                         const Tensor* shared_values)
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
    build(replica, shared_values);
  }
  if (joined.on_device.empty()) return;
  for_each_replica([](Replica& replica) {
    replica.device_collective->join(
        [&](std::span<std::byte> bytes) { replica.collective->broadcast(bytes, 0); });
  });
}

// Together: a replica that leaves may wait for the others of its machine.
Synchronous::~Synchronous() {
  if (replicas_.empty() || replicas_.front().device_collective == nullptr) return;
  team_.run([&](int i) { replicas_[static_cast<std::size_t>(i)].device_collective->leave(); });
}

void Synchronous::build(Replica& replica, const Tensor* shared_values) {
  const ArenaLayout layout = graph_.parameter_layout();
  const Tensor& block = replica.collective->block();
  const Tensor gradients = block.rows(kTrailerElements, block.num_elements());
  replica.backend = make_backend(backend_options(options_, replica.index));
  replica.arena = std::make_unique<ParameterArena>(
      layout, plan_buckets(layout, options_.bucket_bytes), shared_values, &gradients);
  replica.state = std::make_unique<StateBlock>(graph_.state_layout());
  fill_initial_values(graph_, options_.seed, *replica.arena);
  fill_initial_state(graph_, *replica.state);
  StatisticsReducer* reducer = nullptr;
  if (options_.batch_norm == BatchNormStatistics::kSync && replica.collective->size() > 1) {
    statistics_.push_back(std::make_unique<GatheredStatistics>(*replica.collective));
    reducer = statistics_.back().get();
  }
  replica.model = replica.backend->compile(graph_, *replica.arena, *replica.state,
                                           {.mode = Mode::kTrain,
                                            .batch_size = options_.batch_size_per_replica,
                                            .statistics = reducer,
                                            .updates_on_device = updates_on_device_,
                                            .device_collective = replica.device_collective.get()});
}

std::string Synchronous::own_name() const {
  if (options_.membership == nullptr) return "a replica of this process";
  const Membership& membership = *options_.membership;
  const Member& me = membership.members()[static_cast<std::size_t>(membership.index())];
  return "rank " + std::to_string(me.index) + " (host " + me.host + ", pid " +
         std::to_string(me.pid) + ")";
}

InputShard Synchronous::input_shard() const noexcept {
  return {.first = first_rank(),
          .count = static_cast<int>(replicas_.size()),
          .total = replicas_.front().collective->size()};
}

void Synchronous::for_each_replica(const std::function<void(Replica&)>& task) {
  team_.run([&](int i) { task(replicas_[static_cast<std::size_t>(i)]); },
            [&](std::exception_ptr error) {
              abort(own_name() + " failed: " + describe(std::move(error)));
            });
}

std::vector<double> Synchronous::gather(std::span<const double> mine) {
  const auto n = static_cast<std::size_t>(replicas_.front().collective->size());
  std::vector<int> speakers{0};  // a task speaks through its first replica
  if (options_.membership != nullptr) {
    speakers.clear();
    for (const Member& member : options_.membership->members()) {
      speakers.push_back(member.first_replica);
    }
  }
  constexpr std::size_t kMost = Collective::kMostGatheredBytes / sizeof(double);
  std::vector<double> by_task(speakers.size() * mine.size());
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
      for (std::size_t task = 0; task < speakers.size(); ++task) {
        const auto from = static_cast<std::size_t>(speakers[task]) * count;
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from), count,
                    by_task.begin() + static_cast<std::ptrdiff_t>(task * mine.size() + begin));
      }
    }
  });
  return by_task;
}

void Synchronous::broadcast(std::span<std::byte> bytes) {
  for_each_replica([&](Replica& replica) {
    std::vector<std::byte> unread(replica.index == 0 ? 0 : bytes.size());
    replica.collective->broadcast(replica.index == 0 ? bytes : std::span(unread), 0);
  });
}

void Synchronous::agree() {
  if (replicas_in_sync() == 1) return;
  for_each_replica([&](Replica& replica) { bring_to_host(replica); });
  // Under synchronised statistics all replicas hold the same ones already, bit for bit.
  if (options_.batch_norm == BatchNormStatistics::kLocal) {
    for_each_replica([&](Replica& replica) { average_running_statistics(replica); });
  }
  check_same_values("weights");
}

void Synchronous::average_running_statistics(Replica& replica) {
  const std::span<float> state = replica.state->values.f32();
  if (state.empty()) return;
  Collective& collective = *replica.collective;
  const auto n = static_cast<std::size_t>(collective.size());
  const auto own = static_cast<double>(replica.samples_in_statistics);
  std::vector<double> weights(n);
  collective.all_gather(std::as_bytes(std::span(&own, 1)),
                        std::as_writable_bytes(std::span(weights)));
  double total = 0.0;
  for (const double weight : weights) total += weight;
  if (total == 0.0) return;
  constexpr std::size_t kMost = Collective::kMostGatheredBytes / sizeof(float);
  std::vector<float> all;
  for (std::size_t begin = 0; begin < state.size(); begin += kMost) {
    const std::span<float> part = state.subspan(begin, std::min(kMost, state.size() - begin));
    all.resize(n * part.size());
    collective.all_gather(bytes_of(part), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < part.size(); ++i) {
      double sum = 0.0;
      for (std::size_t r = 0; r < n; ++r) {
        sum += weights[r] * static_cast<double>(all[r * part.size() + i]);
      }
      part[i] = static_cast<float>(sum / total);
    }
  }
  // The device's are older now; it takes statistics down together with values.
  if (updates_on_device_) replica.arena->bump_all_versions();
  replica.samples_in_statistics = 0;
}

void Synchronous::check_same_values(std::string_view what) {
  if (replicas_in_sync() == 1 || shares_values_) return;
  for_each_replica([&](Replica& replica) {
    std::uint64_t own = hash_bytes(replica.arena->values());
    for (const Snapshot::Slot& slot : slots_of(replica)) own = own * 31 + hash_bytes(slot.values);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(replica.collective->size()));
    replica.collective->all_gather(std::as_bytes(std::span(&own, 1)),
                                   std::as_writable_bytes(std::span(all)));
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      throw PeerError("replica " + std::to_string(r) + " holds other " + std::string(what) +
                      " than replica 0: they would train different networks; start all tasks with "
                      "the same program, --model, --data and --seed");
    }
  });
}

void Synchronous::bring_to_host(const Replica& replica) const {
  std::vector<Tensor> slots;
  for (const Snapshot::Slot& slot : slots_of(replica)) slots.push_back(slot.values);
  replica.backend->to_host(*replica.arena, slots);
}

Snapshot Synchronous::snapshot() {
  const Replica& replica = replicas_.front();
  bring_to_host(replica);
  return {replica.arena->values(), slots_of(replica), replica.state->values,
          replica.backend->loss_scale(*replica.arena)};
}

void Synchronous::restore(const Snapshot& saved) {
  const Snapshot live = snapshot();
  check_snapshot(saved, live);
  if (is_chief()) copy_snapshot(saved, live);
  for_each_replica([&](Replica& replica) {
    Collective& collective = *replica.collective;
    bring_to_host(replica);  // or what is older would come up later, over what is written here
    // One block for all: it is filled, and its replicas share one task.
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

void Synchronous::restore_loss_scale(Replica& replica, const Snapshot& saved) {
  // The chief's counts.
  const LossScaleState own = saved.loss_scale.value_or(LossScaleState{});
  std::array<double, 4> told{saved.loss_scale ? 1.0 : 0.0, static_cast<double>(own.scale),
                             static_cast<double>(own.good_steps),
                             static_cast<double>(own.skipped_steps)};
  replica.collective->broadcast(std::as_writable_bytes(std::span(told)), 0);
  if (told[0] == 0.0) return;
  replica.backend->set_loss_scale(*replica.arena, {.scale = static_cast<float>(told[1]),
                                                   .good_steps = std::llround(told[2]),
                                                   .skipped_steps = std::llround(told[3])});
}

void Synchronous::abort(std::string_view reason) noexcept {
  for (Replica& replica : replicas_) {
    replica.collective->abort(reason);
    if (replica.device_collective != nullptr) replica.device_collective->abort(reason);
  }
}

}  // namespace syncopate
