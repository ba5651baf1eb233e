// Batches that somebody else chooses, one after the other: what a replica trains that keeps step
// with nobody. The order of an epoch and its augmentation are those of make_batch_source; only who
// gets which part of it is decided while training runs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "worker/input/batch_reader.h"
#include "worker/input/batch_ring.h"
#include "worker/input/batch_source.h"

namespace syncopate {

// Where leases come from.
struct LeaseOffice {
  // The next batch; nothing: there is no more. May block. From a reader thread, one call at a time,
  // in order, and none after it gave nothing or threw.
  std::function<std::optional<ps::SampleRange>()> next_lease;
  // Ends a next_lease() that waits, and any later one at once. Called once, when the source ends.
  std::function<void()> stop;
};

struct LeasedInputOptions {
  // batch_size is the most samples a lease has. prefetch: leases taken ahead of the one asked for;
  // 0 takes none before it is asked for. drop_remainder and shard mean nothing here.
  InputOptions input;
  // loss_divisor is so many times the batch's samples: the gradients that are summed into one
  // update, where several are.
  std::int64_t loss_divisor_factor = 1;
};

// upcoming(), next() and position() from one thread only.
class LeasedBatchSource final : public BatchSource {
 public:
  // The dataset outlives the source. Throws what make_batch_source throws.
  LeasedBatchSource(const Dataset& dataset, const LeasedInputOptions& options, LeaseOffice office);

  // The samples of the batch that next() will return; null at the end. Waits for the lease, not for
  // its samples to be read. Valid until the next call of next(). Throws what next_lease threw, and
  // the same on every later call; UsageError for a lease that does not fit the dataset.
  const ps::SampleRange* upcoming();
  // Not at the end. Throws what upcoming() throws, and what the dataset throws.
  const Batch& next() override;
  // Of the upcoming() batch once that was asked for, of the end of the last one before. The other
  // workers' batches are not in it: where the run stands, its ledger knows.
  ps::DataPosition position() const override { return position_; }
  std::int64_t batches_per_epoch() const override { return reader_.plan().batches_per_epoch(); }
  // wait_seconds: for samples to be read; not for leases.
  InputCounters counters() const override;

 private:
  static InputOptions for_whole_batches(InputOptions options);
  void fill(std::int64_t sequence, std::size_t slot);
  std::optional<ps::SampleRange> lease(std::int64_t sequence);
  std::optional<ps::SampleRange> ask_office();
  void stop() noexcept;

  const BatchReader reader_;
  const LeaseOffice office_;
  const std::int64_t prefetch_;
  const std::int64_t loss_divisor_factor_;
  std::int64_t dataset_size_;
  std::vector<BatchSlot> slots_;

  std::int64_t taken_ = 0;  // the consumer's own
  ps::SampleRange upcoming_;
  ps::DataPosition position_;

  std::mutex mutex_;  // guards all below but the ring
  std::condition_variable asked_;
  std::condition_variable leased_;
  std::vector<ps::SampleRange> leases_;  // by slot
  std::int64_t num_asked_ = 0;           // batches that the consumer has asked for
  std::int64_t num_leased_ = 0;
  bool ended_ = false;  // no lease follows the last one
  std::exception_ptr error_;
  bool stopping_ = false;

  BatchRing ring_;  // last: its threads use the members above
};

}  // namespace syncopate
