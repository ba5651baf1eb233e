// The batches of an asynchronous worker: ranges of samples that the job leases to it while training
// runs. The order of an epoch and its augmentation are the same as in make_batch_source.
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
  // Returns the next range of samples that the job leases to this worker, or nothing when none is
  // left. May block. Reader threads call it one at a time and in order, and not again after it
  // returned nothing or threw.
  std::function<std::optional<ps::SampleRange>()> next_lease;
  // Ends a call of next_lease() that waits, and makes later calls end at once. Called once, when
  // the source ends.
  std::function<void()> stop;
};

struct LeasedInputOptions {
  // options.batch_size is the most samples of a lease. prefetch: leases taken ahead of the
  // requested one; with Autotune, one for each reader and one more. drop_remainder and shard are
  // not used.
  InputOptions input;
  // A batch's loss_divisor is this factor times its samples; above 1 where several gradients make
  // one update.
  std::int64_t loss_divisor_factor = 1;
};

// The batches of one asynchronous worker. One thread calls upcoming(), next() and position().
class LeasedBatchSource final : public BatchSource {
 public:
  // The data set must outlive the source. Throws what make_batch_source throws.
  LeasedBatchSource(const Dataset& dataset, const LeasedInputOptions& options, LeaseSource source);

  // Returns the samples of the batch that next() will return; null at the end. Waits for the lease,
  // but not for its samples. Valid until the next call of next(). Throws what next_lease threw, and
  // throws it again on every later call; UsageError for a lease that does not fit the data set.
  const ps::SampleRange* upcoming();
  // Returns the next batch; must not be called once upcoming() has returned null. Throws what
  // upcoming() and the data set throw.
  const Batch& next() override;
  // Returns the start of the batch that upcoming() returned, if it was called for the next batch;
  // otherwise the end of the last batch. Batches of other workers are not covered; the job keeps
  // account of all leased samples.
  ps::DataPosition position() const override { return position_; }
  std::int64_t batches_per_epoch() const override { return reader_.plan().batches_per_epoch(); }
  // The waits of the consumer: wait_seconds counts waiting for samples, not for leases.
  InputCounters counters() const override;

 private:
  static InputOptions for_whole_batches(InputOptions options);
  void fill(std::int64_t sequence, std::size_t slot);
  bool lease(std::int64_t sequence);
  std::optional<ps::SampleRange> request_lease();
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

  std::mutex mutex_;  // guards all members below but the ring
  std::condition_variable asked_;
  std::condition_variable leased_;
  std::vector<ps::SampleRange> leases_;  // the range of samples leased for each batch slot
  std::int64_t num_asked_ = 0;           // batches that the consumer has requested
  std::int64_t num_leased_ = 0;
  bool ended_ = false;  // there are no more leases
  std::exception_ptr error_;
  bool stopping_ = false;

  BatchRing ring_;  // last: its threads use the members above
};

}  // namespace syncopate
