#include "worker/input/batch_plan.h"

#include <algorithm>
#include <string>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Far above any real batch, far below where products of counts overflow.
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 31;
constexpr int kMostPrefetch = 1 << 16;
constexpr int kMostReplicas = 1 << 20;

void check_options(std::int64_t dataset_size, const InputOptions& options) {
  const auto wrong = [](const std::string& what, std::int64_t found, const std::string& expected) {
    throw UsageError(what + " is " + std::to_string(found) + "; expected " + expected);
  };
  if (dataset_size <= 0) throw UsageError("the dataset is empty; expected one sample or more");
  if (options.batch_size <= 0) wrong("batch size", options.batch_size, "1 or more");
  if (options.batch_size > kLargestBatch) wrong("batch size", options.batch_size, "at most 2^31");
  if (options.threads < 1) wrong("the number of input threads", options.threads, "1 or more");
  if (options.prefetch < 0 || options.prefetch > kMostPrefetch) {
    wrong("prefetch", options.prefetch, "0 to " + std::to_string(kMostPrefetch));
  }
  const InputShard& shard = options.shard;
  if (shard.total < 1 || shard.total > kMostReplicas) {
    wrong("the number of replicas", shard.total, "1 to 1048576");
  }
  if (shard.first < 0 || shard.count < 1 || shard.first > shard.total - shard.count) {
    throw UsageError("the input shard is replicas " + std::to_string(shard.first) + " to " +
                     std::to_string(shard.first + shard.count - 1) + "; expected some of 0 to " +
                     std::to_string(shard.total - 1));
  }
  if (options.drop_remainder && options.batch_size > dataset_size) {
    throw UsageError("a batch of " + std::to_string(options.batch_size) + " samples over " +
                     std::to_string(shard.total) + " replica(s) is larger than the dataset of " +
                     std::to_string(dataset_size) + "; use a smaller batch size");
  }
}

}  // namespace

BatchPlan::BatchPlan(std::int64_t dataset_size, const InputOptions& options, DataPosition start)
    : dataset_size_(dataset_size),
      global_batch_(0),
      drop_remainder_(options.drop_remainder),
      shard_(options.shard),
      start_(start),
      batches_in_first_epoch_(0) {
  check_options(dataset_size, options);
  if (start.epoch < 0 || start.offset < 0 || start.offset > dataset_size) {
    throw UsageError("the data position (epoch " + std::to_string(start.epoch) + ", sample " +
                     std::to_string(start.offset) + ") does not fit a dataset of " +
                     std::to_string(dataset_size) + " samples; was the run started on other data?");
  }
  global_batch_ = options.batch_size;
  batches_in_first_epoch_ = batches_in(dataset_size_ - start_.offset);
  if (batches_in_first_epoch_ == 0) {
    start_ = {start.epoch + 1, 0};
    batches_in_first_epoch_ = batches_per_epoch();
  }
}

std::int64_t BatchPlan::batches_in(std::int64_t samples) const noexcept {
  return drop_remainder_ ? samples / global_batch_ : (samples + global_batch_ - 1) / global_batch_;
}

PlannedBatch BatchPlan::batch(std::int64_t sequence) const {
  PlannedBatch planned;
  if (sequence < batches_in_first_epoch_) {
    planned.position = {start_.epoch, start_.offset + sequence * global_batch_};
  } else {
    const std::int64_t later = sequence - batches_in_first_epoch_;
    planned.position = {start_.epoch + 1 + later / batches_per_epoch(),
                        later % batches_per_epoch() * global_batch_};
  }
  const std::int64_t offset = planned.position.offset;
  planned.global_count = std::min(global_batch_, dataset_size_ - offset);
  const SampleRange share = share_of(planned.global_count);
  planned.begin = offset + share.begin;
  planned.end = offset + share.end;
  return planned;
}

SampleRange BatchPlan::share_of(std::int64_t samples) const noexcept {
  return {share_of_replica(samples, shard_.first, shard_.total).begin,
          share_of_replica(samples, shard_.first + shard_.count - 1, shard_.total).end};
}

std::int64_t BatchPlan::most_samples() const noexcept {
  const std::int64_t share = share_of_replica(global_batch_, 0, shard_.total).end;
  return std::min(share * shard_.count, global_batch_);
}

}  // namespace syncopate
