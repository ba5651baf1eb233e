// One copy of the variables in host memory, in the shard that a parameter server would hold,
// without its sockets. Replicas compute on it, lay their buckets' gradients open, and whoever has
// time takes a piece of a bucket that all have pushed, sums and updates it: while earlier layers
// still go backward, on all replicas' threads, each element once. With exactly one replica the
// variables live on its device, as in TensorFlow's CentralStorageStrategy, and this is one-device.
// Replicas that keep no step are in central_storage_asynchronous.cc.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "ps/shard/shard.h"
#include "strategies/central_storage.h"
#include "strategies/collective/stopwatch.h"
#include "strategies/peers_wait.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

constexpr std::int64_t kPieceElements = kBlockElements;
constexpr int kSpins = 200;
constexpr std::chrono::seconds kPatience(600);
constexpr std::chrono::milliseconds kNap(50);

// What the replicas share besides the shard.
struct CentralState {
  CentralState(const ArenaLayout& layout, const StrategyOptions& options, const Tensor& values)
      : replicas(options.replicas),
        shard(layout, plan_buckets(layout, options.bucket_bytes), make_optimizer(options.optimizer),
              {}, values) {}

  // Every replica calls as its step begins, before it pushes. The shard's versions are the numbers
  // of the steps, also where training goes on from elsewhere: Adam's bias correction needs them.
  void begin_step(std::int64_t step) {
    const std::lock_guard lock(mutex);
    const auto version = static_cast<std::uint64_t>(step);
    if (is_ready && shard.view(0).version == version) return;
    ps::ShardSnapshot state{.values = shard.values(),
                            .slots = {shard.slots().begin(), shard.slots().end()}};
    state.buckets.resize(shard.buckets().size(), {.version = version, .workers = {}});
    shard.restore(state);
    for (int replica = 0; replica < replicas; ++replica) shard.join(replica, 1, 0);
    is_ready = true;
  }

  void ring() {
    bell.fetch_add(1, std::memory_order_release);
    futex_wake_all(bell);
  }

  const int replicas;
  ps::Shard shard;
  std::mutex mutex;
  bool is_ready = false;               // guarded by mutex; false: values came from outside
  std::atomic<std::uint32_t> bell{0};  // bumped when a bucket becomes due, or is done
  std::atomic<bool> aborted{false};
};

class CentralVariables final : public VariableStore {
 public:
  CentralVariables(Replica& replica, CentralState& central)
      : replica_(replica), central_(central), pulled_(replica.arena->buckets().size()) {}

  // The replica's device is the host: it computes on the shard's values, and nothing is copied.
  void pull(const UpdateStep& update) override {
    // A step that failed has left pushes of some replicas behind.
    if (central_.aborted.load(std::memory_order_acquire)) throw_aborted();
    update_ = update;
    central_.begin_step(update.step);
    for (std::size_t b = 0; b < pulled_.size(); ++b) {
      pulled_[b] = central_.shard.view(static_cast<BucketId>(b)).version;
    }
  }
  void wait_values(BucketId /*bucket*/) override {}
  void report(const StepReport& mine) override {
    report_ = mine;
    report_.stood_seconds = peers_wait_.stood_seconds();
  }

  void push(BucketId bucket) override {
    watch_.begin();
    const Stopwatch::Exposed exposed(watch_);
    const auto b = static_cast<std::size_t>(bucket);
    const Bucket& range = replica_.arena->buckets()[b];
    const std::span<const float> gradients = replica_.arena->gradients().f32();
    const std::span<const float> gradient = gradients.subspan(
        static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin));
    central_.shard.push({.id = {.worker = replica_.index, .incarnation = 1, .sequence = pulled_[b]},
                         .bucket = bucket,
                         .version = pulled_[b],
                         .learning_rate = update_.learning_rate,
                         .gradient = {.codec = ps::Codec::kF32,
                                      .num_elements = range.end - range.begin,
                                      .bytes = std::as_bytes(gradient)},
                         .values = {}});
    // It was the last one to push: the others may help.
    if (const auto piece = central_.shard.claim(bucket, kPieceElements)) {
      central_.ring();
      update(*piece);
    }
    // Whoever has pushed a bucket is done with its values, so one that is due may change now.
    for (std::size_t due = 0; due <= b; ++due) take_pieces(due);
  }

  StepReport commit() override {
    {
      const Stopwatch::Exposed exposed(watch_);
      for (std::size_t b = 0; b < pulled_.size(); ++b) {
        finish(b);
        replica_.arena->bump_version(static_cast<BucketId>(b));
      }
    }
    watch_.end();
    const StepReport total = sum_of_reports();
    peers_wait_.end_step(watch_.times().exposed_seconds, total.stood_seconds);
    return total;
  }

  CommunicationTimes times() const override {
    CommunicationTimes times = watch_.times();
    times.peers_wait_seconds = peers_wait_.waited_seconds();
    return times;
  }

 private:
  [[noreturn]] static void throw_aborted() {
    throw PeerError("another replica of this task failed");
  }

  bool done(std::size_t b) const {
    return central_.shard.view(static_cast<BucketId>(b)).version != pulled_[b];
  }

  void take_pieces(std::size_t b) {
    while (const auto piece = central_.shard.claim(static_cast<BucketId>(b), kPieceElements)) {
      update(*piece);
    }
  }

  void update(const ps::Piece& piece) {
    events_.clear();
    central_.shard.update(piece, events_);
    if (!events_.empty()) central_.ring();
  }

  void finish(std::size_t b) {
    const Deadline deadline = Deadline::after(kPatience);
    for (;;) {
      const std::uint32_t rung = central_.bell.load(std::memory_order_acquire);
      take_pieces(b);
      // The last pieces are in others' hands for microseconds.
      for (int spin = 0; spin < kSpins; ++spin) {
        if (done(b)) return;
        _mm_pause();
      }
      if (central_.aborted.load(std::memory_order_acquire)) throw_aborted();
      if (deadline.passed()) {
        throw PeerError("replica " + std::to_string(replica_.index) + " waited " +
                        std::to_string(kPatience.count()) +
                        " s for the gradients of the others in central storage");
      }
      futex_wait(central_.bell, rung, kNap);
    }
  }

  StepReport sum_of_reports() {
    Collective& collective = *replica_.collective;
    reports_.resize(static_cast<std::size_t>(collective.size()));
    collective.all_gather(std::as_bytes(std::span(&report_, 1)),
                          std::as_writable_bytes(std::span(reports_)));
    StepReport total;
    total.stood_seconds = reports_.front().stood_seconds;
    for (const StepReport& one : reports_) {
      total.stood_seconds = std::min(total.stood_seconds, one.stood_seconds);
      total.scores.loss += one.scores.loss;
      total.scores.num_correct += one.scores.num_correct;
      total.scores.num_samples += one.scores.num_samples;
      total.stops += one.stops;
    }
    return total;
  }

  Replica& replica_;
  CentralState& central_;
  std::vector<std::uint64_t> pulled_;  // version of each bucket that this step computes with
  std::vector<ps::ShardEvent> events_;
  UpdateStep update_;
  StepReport report_;
  std::vector<StepReport> reports_;
  Stopwatch watch_;
  PeersWait peers_wait_;
};

class CentralStorage final : public Synchronous {
 public:
  CentralStorage(const StrategyOptions& options, const Graph& graph, const Tensor& values)
      : Synchronous(options, graph,
                    {.collectives = make_local_collectives(collective_options(options, graph))},
                    &values),
        central_(graph.parameter_layout(), options, values) {
    for (Replica& replica : replicas()) {
      replica.variables = std::make_unique<CentralVariables>(replica, central_);
    }
  }

  void restore(const Snapshot& saved) override {
    Synchronous::restore(saved);
    const std::lock_guard lock(central_.mutex);
    central_.is_ready = false;
  }

  void abort(std::string_view reason) noexcept override {
    central_.aborted.store(true, std::memory_order_release);
    central_.ring();
    Synchronous::abort(reason);
  }

 private:
  std::vector<Snapshot::Slot> slots_of(const Replica& /*replica*/) const override {
    std::vector<Snapshot::Slot> slots;
    const std::span<const Tensor> tensors = central_.shard.slots();
    const auto names = central_.shard.optimizer().slot_names();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      slots.push_back({std::string(names[i]), tensors[i]});
    }
    return slots;
  }

  CentralState central_;
};

}  // namespace

std::unique_ptr<Strategy> make_central_storage(const StrategyOptions& options, const Graph& graph) {
  if (options.membership != nullptr && options.membership->members().size() > 1) {
    throw UsageError("--strategy central-storage runs in one process, and this job has " +
                     std::to_string(options.membership->members().size()) +
                     " tasks; choose multi-worker-mirrored");
  }
  if (options.collective != "auto" && options.collective != "local") {
    throw UsageError("--collective " + options.collective +
                     ": --strategy central-storage joins threads of one process; leave it out");
  }
  if (!keeps_step(options.consistency)) return make_asynchronous_central_storage(options, graph);
  if (options.replicas == 1) return make_one_device(options, graph);
  return std::make_unique<CentralStorage>(
      options, graph, make_host_tensor({graph.parameter_layout().total()}, DType::kF32));
}

}  // namespace syncopate
