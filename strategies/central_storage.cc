// --strategy central-storage, synchronous: one copy of the variables in host memory, held by the
// shard class of the parameter servers, without sockets. Replicas compute on the shard's values.
// When all replicas have pushed a bucket, their threads sum and update it in pieces, each element
// once, while the backward pass goes on with earlier layers. With one replica this is one-device,
// as TensorFlow's CentralStorageStrategy then keeps the variables on the device. Asynchronous
// replicas are in central_storage_asynchronous.cc.
#include <fmt/format.h>
#include <immintrin.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "models/tensor/sums.h"
#include "ps/shard/shard.h"
#include "strategies/collective/work_progress.h"
#include "strategies/step_trailer.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

constexpr std::int64_t kPieceElements = kBlockElements;
constexpr int kUpdateSpins = 200;
constexpr std::chrono::seconds kUpdateTimeout(600);
constexpr std::chrono::milliseconds kFutexWait(50);

// The state that all replicas of central-storage share: the shard and its lock.
struct CentralState {
  CentralState(const ArenaLayout& layout, const StrategyOptions& options, const Tensor& values)
      : replicas(options.replicas),
        shard(layout, plan_buckets(layout, options.bucket_bytes), make_optimizer(options.optimizer),
              {}, values) {}

  // Every replica calls this at the beginning of a step, before it pushes. The shard's versions
  // equal the step numbers, also after a resume, because Adam's bias correction uses them.
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

  void notify() {
    changes.fetch_add(1, std::memory_order_release);
    futex_wake_all(changes);
  }

  const int replicas;
  ps::Shard shard;
  std::mutex mutex;
  bool is_ready = false;  // false until the shard holds the restored values; guarded by mutex
  // A counter that waiting replicas watch: it grows when the last replica has pushed a bucket, and
  // when a bucket is updated.
  std::atomic<std::uint32_t> changes{0};
  std::atomic<bool> aborted{false};
};

class CentralVariables final : public VariableStore {
 public:
  CentralVariables(Replica& replica, CentralState& central, double clip_norm)
      : replica_(replica),
        central_(central),
        clip_norm_(clip_norm),
        pulled_(replica.arena->buckets().size()) {}

  // Pulling copies nothing: the replica computes on the shard's values in host memory.
  void pull(const UpdateStep& update) override {
    // An aborted job cannot go on: after a failed step the shard may hold the pushes of only some
    // replicas.
    if (central_.aborted.load(std::memory_order_acquire)) throw_aborted();
    update_ = update;
    central_.begin_step(update.step);
    for (std::size_t b = 0; b < pulled_.size(); ++b) {
      pulled_[b] = central_.shard.view(static_cast<BucketId>(b)).version;
    }
  }
  void wait_values(BucketId /*bucket*/) override {}

  void push(BucketId bucket, const StepReport& report) override {
    report_ = report;
    report_.blocked_seconds = peers_wait_.blocked_seconds();
    watch_.begin();
    const Stopwatch::Exposed exposed(watch_);
    const Span span(replica_.trace, TraceKind::kCommunication);
    if (clip_norm_ <= 0.0) return hand_over(bucket);
    const Bucket& range = replica_.arena->buckets()[static_cast<std::size_t>(bucket)];
    sums_.push_back(replica_.collective->all_reduce(
        replica_.arena->gradients().rows(range.begin, range.end), range.begin));
  }

  StepReport commit() override {
    {
      const Stopwatch::Exposed exposed(watch_);
      const Span span(replica_.trace, TraceKind::kCommunication);
      if (clip_norm_ > 0.0) hand_over_clipped();
      for (std::size_t b = 0; b < pulled_.size(); ++b) {
        finish(b);
        replica_.arena->bump_version(static_cast<BucketId>(b));
      }
    }
    watch_.end();
    const StepReport total = sum_of_reports();
    peers_wait_.end_step(watch_.times().exposed_seconds, total.blocked_seconds);
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

  // The norm of a step is the norm of the summed gradients of all buckets, so the replicas sum them
  // before the shard does. The first replica then hands over the clipped sum, the others zeros.
  void hand_over_clipped() {
    for (const WorkId sum : sums_) replica_.collective->wait(sum);
    sums_.clear();
    if (replica_.index == 0) {
      replica_.backend->clip_gradients(*replica_.arena, clip_norm_);
    } else {
      std::ranges::fill(replica_.arena->gradients().f32(), 0.0F);
    }
    for (std::size_t b = 0; b < pulled_.size(); ++b) hand_over(static_cast<BucketId>(b));
  }

  void hand_over(BucketId bucket) {
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
    // claim() returns a piece of the bucket's update if this replica is the last one that pushed
    // the bucket. Other replicas that wait may then take further pieces.
    if (const auto piece = central_.shard.claim(bucket, kPieceElements)) {
      central_.notify();
      update(*piece);
    }
    // A replica that has pushed a bucket no longer reads the bucket's values, so buckets that all
    // replicas have pushed may be updated now.
    for (std::size_t due = 0; due <= b; ++due) take_pieces(due);
  }

  bool is_updated(std::size_t b) const {
    return central_.shard.view(static_cast<BucketId>(b)).version != pulled_[b];
  }

  void take_pieces(std::size_t b) {
    while (const auto piece = central_.shard.claim(static_cast<BucketId>(b), kPieceElements)) {
      update(*piece);
    }
  }

  void update(const ps::Piece& piece) {
    const Span span(replica_.trace, TraceKind::kUpdate);
    if (!central_.shard.update(piece)) return;
    // Taken only so that the shard's list does not grow: replicas look at versions, not at events.
    std::vector<ps::ShardEvent> unused;
    central_.shard.take_events(unused);
    central_.notify();
  }

  // Helps to update the bucket and returns when the whole bucket is updated.
  void finish(std::size_t b) {
    const Deadline deadline = Deadline::after(kUpdateTimeout);
    for (;;) {
      const std::uint32_t changes = central_.changes.load(std::memory_order_acquire);
      take_pieces(b);
      // Polls without sleeping: another replica needs only microseconds to update the last pieces.
      for (int spin = 0; spin < kUpdateSpins; ++spin) {
        if (is_updated(b)) return;
        _mm_pause();
      }
      if (central_.aborted.load(std::memory_order_acquire)) throw_aborted();
      if (deadline.passed()) {
        throw PeerError(fmt::format(
            "replica {} waited {} s for the gradients of the other replicas in central storage",
            replica_.index, kUpdateTimeout.count()));
      }
      futex_wait(central_.changes, changes, kFutexWait);
    }
  }

  StepReport sum_of_reports() {
    const Span span(replica_.trace, TraceKind::kCommunication);
    Collective& collective = *replica_.collective;
    reports_.resize(static_cast<std::size_t>(collective.size()));
    collective.all_gather(std::as_bytes(std::span(&report_, 1)),
                          std::as_writable_bytes(std::span(reports_)));
    StepReport total = reports_.front();
    for (std::size_t r = 1; r < reports_.size(); ++r) total += reports_[r];
    return total;
  }

  Replica& replica_;
  CentralState& central_;
  const double clip_norm_;
  std::vector<WorkId> sums_;           // of the buckets of this step, if gradients are clipped
  std::vector<std::uint64_t> pulled_;  // version of each bucket that this step computes with
  UpdateStep update_;
  StepReport report_;
  std::vector<StepReport> reports_;  // the latest report of each replica
  Stopwatch watch_;
  PeersWait peers_wait_;
};

class CentralStorage final : public SynchronousStrategy {
 public:
  CentralStorage(const StrategyOptions& options, const Graph& graph, const Tensor& values)
      : SynchronousStrategy(
            options, graph,
            {.collectives = make_local_collectives(collective_options(options, graph))}, &values),
        central_(graph.parameter_layout(), options, values) {
    for (Replica& replica : replicas()) {
      replica.variables = std::make_unique<CentralVariables>(replica, central_, options.clip_norm);
    }
  }

  void restore(const Snapshot& saved) override {
    SynchronousStrategy::restore(saved);
    const std::lock_guard lock(central_.mutex);
    central_.is_ready = false;
  }

  void abort(std::string_view reason) noexcept override {
    central_.aborted.store(true, std::memory_order_release);
    central_.notify();
    SynchronousStrategy::abort(reason);
  }

 private:
  std::vector<Snapshot::Slot> slots_of(const Replica& /*replica*/) const override {
    return named_slots(central_.shard.optimizer(), central_.shard.slots());
  }

  CentralState central_;
};

}  // namespace

std::unique_ptr<Strategy> make_central_storage(const StrategyOptions& options, const Graph& graph) {
  if (!is_synchronous(options.consistency))
    return make_asynchronous_central_storage(options, graph);
  if (options.replicas == 1) return make_one_device(options, graph);
  return std::make_unique<CentralStorage>(
      options, graph, make_host_tensor({graph.parameter_layout().total()}, DType::kF32));
}

}  // namespace syncopate
