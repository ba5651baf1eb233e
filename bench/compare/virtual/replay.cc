#include "bench/compare/virtual/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/compare/virtual/device.h"
#include "bench/compare/virtual/outgoing_gradient.h"
#include "bench/compare/virtual/recorded_job.h"
#include "models/base/errors.h"
#include "ps/server/served_variables.h"
#include "worker/checkpoint/weights_hash.h"
#include "worker/input/batch_reader.h"
#include "worker/run/data_agreement.h"
#include "worker/run/network_for_data.h"

namespace syncopate::bench {
namespace {

using Kind = ps::OrderEntry::Kind;

// Applied in the recorded order, whatever the rule that led to it was.
ps::ConsistencyOptions in_any_order(const ps::wire::DeclarationT& declaration) {
  ps::ConsistencyOptions options{.consistency = ps::Consistency::kAsync};
  options.staleness_rule = static_cast<ps::StalenessRule>(declaration.staleness_rule);
  if (options.staleness_rule == ps::StalenessRule::kDelayCompensationAdaptive) {
    options.compensation = 2.0F;  // as made by make_served_variables()
  }
  return options;
}

InputOptions input_of(const RecordedJob& job, std::uint64_t seed) {
  return {.batch_size = job.declaration.batch_size,
          .seed = seed,
          .augment = job.agreed("--augment") == "crop-flip" ? Augment::kCropFlip : Augment::kNone};
}

class Replay {
 public:
  Replay(const RecordedJob& job, const DataSplits& data)
      : job_(job),
        data_(data),
        seed_(std::stoull(job.agreed("--seed"))),
        compression_(ps::parse_compression(job.agreed("--compress"), "--compress")),
        graph_(network_for_data(job.agreed("--model"), data.name, data)),
        reader_(*data.train, input_of(job, seed_), {}),
        slot_(reader_.make_slot()),
        next_(job.shards.size()) {
    const Tensor first = device_of(1).values();
    for (std::size_t s = 0; s < job.shards.size(); ++s) {
      served_.push_back(ps::make_served_variables(job.declaration, static_cast<int>(s)));
      ps::Shard& shard = *served_.back()->shard;
      shard.set_consistency(in_any_order(job.declaration));
      for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
        const Bucket& range = shard.buckets()[b];
        if (range.end > first.num_elements()) {
          throw UsageError(job.shards[s].file.string() + ": the variables are not those of " +
                           graph_.name + " on this data");
        }
        const auto window = shard.window(static_cast<BucketId>(b));
        std::ranges::copy(part_of(first.f32(), range), shard.values().f32().begin() + window.begin);
      }
    }
  }

  ReplayOutcome run() {
    // A shard goes on until it needs a gradient of values that another one has not given out yet.
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t s = 0; s < next_.size(); ++s) {
        while (next_[s] < entries(s).size() && replay(s, entries(s)[next_[s]])) {
          ++next_[s];
          goes_on = true;
        }
      }
    }
    for (std::size_t s = 0; s < next_.size(); ++s) {
      if (next_[s] < entries(s).size())
        throw misfit(s, "a gradient of values that nobody was given");
    }
    return outcome();
  }

 private:
  struct Worker {
    std::vector<float> values;            // [arena total], what it was handed
    std::vector<std::uint64_t> versions;  // of them, by bucket of the job
    std::optional<OutgoingGradient> gradient;
    std::uint64_t sequence = 0;  // of it
  };

  static std::span<const float> part_of(std::span<const float> values, const Bucket& range) {
    return values.subspan(static_cast<std::size_t>(range.begin),
                          static_cast<std::size_t>(range.end - range.begin));
  }
  const std::vector<ps::OrderEntry>& entries(std::size_t s) const {
    return job_.shards[s].record.entries;
  }

  FileError misfit(std::size_t s, const std::string& what) const {
    return FileError(job_.shards[s].file.string() + ": entry " + std::to_string(next_[s]) +
                     " does not follow from those before it: " + what +
                     "; are all records of one run, and the data what it trained on?");
  }

  // Lanes fix the order of additions, so each number of them has a device of its own.
  VirtualDevice& device_of(int lanes) {
    std::unique_ptr<VirtualDevice>& device = devices_[lanes];
    if (device == nullptr) {
      StrategyOptions options;
      options.seed = seed_;
      options.lanes = lanes;
      options.batch_size_per_replica = job_.declaration.batch_size;
      device = std::make_unique<VirtualDevice>(options, graph_, *data_.test, EvaluationOptions{});
    }
    return *device;
  }

  Worker& worker_of(const ps::OrderEntry& entry) {
    const auto [at, is_new] = workers_.try_emplace({entry.worker, entry.incarnation});
    Worker& worker = at->second;
    if (is_new) {
      worker.values.resize(static_cast<std::size_t>(graph_.parameter_layout().total()));
      worker.versions.resize(job_.placement.buckets.size());
      worker.gradient.emplace(compression_, job_.placement);
      for (const auto& served : served_) served->shard->join(entry.worker, entry.incarnation, 0);
    }
    return worker;
  }

  // False: what it needs is not there yet.
  bool replay(std::size_t s, const ps::OrderEntry& entry) {
    if (entry.kind == Kind::kWritten) return true;
    if (entry.kind == Kind::kAnswered) {
      answer(s, entry);
      return true;
    }
    Worker& worker = worker_of(entry);
    if (worker.sequence != entry.sequence && !compute(worker, entry)) return false;
    apply(s, entry, worker);
    return true;
  }

  void answer(std::size_t s, const ps::OrderEntry& entry) {
    Worker& worker = worker_of(entry);
    const auto b =
        static_cast<std::size_t>(job_.shards[s].job_bucket[static_cast<std::size_t>(entry.bucket)]);
    const Bucket& range = job_.placement.buckets[b];
    ps::Shard& shard = *served_[s]->shard;
    shard.read({.worker = entry.worker,
                .incarnation = entry.incarnation,
                .bucket = entry.bucket,
                .values = std::span(worker.values)
                              .subspan(static_cast<std::size_t>(range.begin),
                                       static_cast<std::size_t>(range.end - range.begin))});
    events_.clear();
    shard.work(entry.bucket, events_);
    if (shard.view(entry.bucket).version != entry.version_after) {
      throw misfit(s, "values of version " + std::to_string(entry.version_after) + ", and it is " +
                          std::to_string(shard.view(entry.bucket).version));
    }
    worker.versions[b] = entry.version_after;
  }

  bool compute(Worker& worker, const ps::OrderEntry& entry) {
    const RecordedPush& push = job_.pushes.at({entry.worker, entry.incarnation, entry.sequence});
    if (push.lanes == 0) return false;
    for (std::size_t b = 0; b < worker.versions.size(); ++b) {
      const std::uint64_t read = push.versions_read[b];
      if (worker.versions[b] == 0 || (read != 0 && worker.versions[b] != read)) return false;
    }
    VirtualDevice& device = device_of(push.lanes);
    reader_.fill(push.batch, push.batch.end - push.batch.begin, slot_);
    device.load(worker.values);
    // Training uses the batch's statistics; what is remembered of them changes no weight.
    device.train(slot_.batch, {});
    worker.gradient->take(device.gradients(), true);
    worker.sequence = entry.sequence;
    ++pushes_;
    return true;
  }

  void apply(std::size_t s, const ps::OrderEntry& entry, const Worker& worker) {
    ps::Shard& shard = *served_[s]->shard;
    const int bucket = job_.shards[s].job_bucket[static_cast<std::size_t>(entry.bucket)];
    shard.push({.id = {entry.worker, entry.incarnation, entry.sequence},
                .bucket = entry.bucket,
                .version = entry.version_read,
                .learning_rate = entry.learning_rate,
                .gradient = worker.gradient->part(bucket),
                .values = {}});
    events_.clear();
    shard.work(entry.bucket, events_);
    if (events_.size() != 1 || events_.front().kind != ps::ShardEvent::Kind::kApplied ||
        events_.front().version != entry.version_after ||
        events_.front().staleness != entry.staleness) {
      throw misfit(s, "an update to version " + std::to_string(entry.version_after) +
                          " with staleness " + std::to_string(entry.staleness));
    }
  }

  ReplayOutcome outcome() const {
    ReplayOutcome outcome{
        .model = graph_.name, .pushes = pushes_, .weights_hash = {}, .values = {}};
    outcome.values = make_host_tensor({graph_.parameter_layout().total()}, DType::kF32);
    for (const auto& served : served_) {
      const ps::Shard& shard = *served->shard;
      for (std::size_t b = 0; b < shard.buckets().size(); ++b) {
        std::ranges::copy(shard.view(static_cast<BucketId>(b)).values,
                          outcome.values.f32().begin() + shard.buckets()[b].begin);
      }
    }
    outcome.weights_hash = weights_hash(outcome.values);
    return outcome;
  }

  const RecordedJob& job_;
  const DataSplits& data_;
  const std::uint64_t seed_;
  const ps::CompressionOptions compression_;
  const Graph graph_;
  const BatchReader reader_;
  BatchSlot slot_;
  std::map<int, std::unique_ptr<VirtualDevice>> devices_;  // by lanes
  std::vector<std::shared_ptr<ps::ServedVariables>> served_;
  std::map<std::pair<int, std::uint32_t>, Worker> workers_;
  std::vector<std::size_t> next_;  // entry of each shard
  std::vector<ps::ShardEvent> events_;
  std::int64_t pushes_ = 0;
};

}  // namespace

ReplayOutcome replay_order(std::span<const std::filesystem::path> files, const DataSplits& data) {
  const RecordedJob job = read_recorded_job(files);
  if (job.agreed("--data") != describe_samples(data)) {
    throw UsageError(files.front().string() + ": the job trained on other data; give the same");
  }
  if (job.agreed("--init-from") != "absent") {
    throw UsageError(files.front().string() +
                     ": the job began with --init-from; only the seed's first values are known");
  }
  return Replay(job, data).run();
}

}  // namespace syncopate::bench
