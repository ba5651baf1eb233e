// The batches of an asynchronous worker. A batch is a range of samples that the job leases to the
// worker while training runs. The order of an epoch and the augmentation are the same as in
// make_batch_source().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batches/batch_reader.h"
#include "worker/input/batches/batch_ring.h"
#include "worker/input/batches/batch_source.h"

namespace syncopate {

// The functions through which a batch source leases ranges of samples from the job.
struct LeaseSource {
  // Returns the next range of samples that the job leases to this worker; nullopt if none is left;
  // an empty range if the job has none now (AsynchronousJob::next_lease()). May block. Reader
  // threads call it one at a time, and not again after it returned nullopt or threw.
  std::function<std::optional<ps::SampleRange>()> next_lease;
  // Makes the call of next_lease() that is waiting now return, and makes later calls return at
  // once. Called once, when the source is destroyed.
  std::function<void()> stop;
};

struct LeasedInputOptions {
  // The options of the input. `batch_size` is the largest number of samples of a lease. `prefetch`
  // is the number of leases that are taken ahead of the lease that the caller requests. If Autotune
  // tunes the input, this number is the number of readers plus one. `drop_remainder` and `shard`
  // are not used.
  InputOptions input;
  // The loss_divisor of a batch is this factor times its number of samples. The factor is above 1
  // if an update sums the gradients of several batches.
  std::int64_t loss_divisor_factor = 1;
};

// The batches of one asynchronous worker. One thread calls upcoming(), next() and position().
class LeasedBatchSource final : public BatchSource {
 public:
  // The data set must outlive the source. Throws what make_batch_source() throws.
  LeasedBatchSource(const Dataset& dataset, const LeasedInputOptions& options, LeaseSource source);

  // Waits until the next lease is known, and returns whether there is one. Returns false if none is
  // left, or if the job has none now because other workers hold all batches.
  bool await_lease();
  // Returns the samples of the batch that next() will return; null at the end. Waits for the lease,
  // but not until its samples are read. The result is valid until the next call of next(). Throws
  // what next_lease() threw, and throws it again on every later call. Throws UsageError for a lease
  // that does not fit the data set.
  const ps::SampleRange* upcoming();
  // Returns the next batch. Must not be called after upcoming() has returned null. Throws what
  // upcoming() and the data set throw.
  const Batch& next() override;
  // Returns the position at which the next batch starts if upcoming() was called for this batch;
  // otherwise the position at which the last batch ended. The position does not include batches of
  // other workers; the job keeps track of all leased samples.
  ps::DataPosition position() const override { return position_; }
  std::int64_t batches_per_epoch() const override { return reader_.plan().batches_per_epoch(); }
  // Returns the counters; wait_seconds includes waiting for samples, but not for leases.
  InputCounters counters() const override;

 private:
  static InputOptions for_whole_batches(InputOptions options);
  void fill(std::int64_t sequence, std::size_t slot);
  bool lease(std::int64_t sequence);
  std::optional<ps::SampleRange> request_lease();
  // Returns the next lease that is not empty, or nullopt. Wakes the consumer at an empty one.
  std::optional<ps::SampleRange> await_next_lease();
  void stop() noexcept;

  const BatchReader reader_;
  const LeaseSource lease_source_;
  const BatchRingOptions ring_options_;
  const std::int64_t loss_divisor_factor_;
  std::int64_t dataset_size_;
  std::vector<BatchSlot> slots_;

  std::int64_t taken_ = 0;  // number of batches taken; used by the consumer only
  ps::SampleRange upcoming_;
  ps::DataPosition position_;

  std::mutex mutex_;  // guards all members below except ring_
  std::condition_variable asked_;
  std::condition_variable leased_;
  std::vector<ps::SampleRange> leases_;  // the range of samples leased for each batch slot
  std::int64_t num_asked_ = 0;           // batches that the consumer has requested
  std::int64_t num_leased_ = 0;
  bool has_none_now_ = false;  // next_lease() returned an empty range, and no other one since
  bool ended_ = false;         // whether next_lease() returned nullopt or threw
  std::exception_ptr error_;
  bool stopping_ = false;

  BatchRing ring_;  // last: its threads use the members above
};

}  // namespace syncopate
