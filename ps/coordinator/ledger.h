// The ledger of batches: it divides each epoch's order into batches, grants them to workers on
// request, and records which batches are trained. Batches of a lost worker are granted to others.
// Each whole batch is trained exactly once per epoch, or at least once if workers are lost. Samples
// at the end of an epoch that do not fill a batch are not trained. The ledger is a pure state
// machine, part of the coordinator.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "ps/shard/consistency.h"

namespace syncopate::ps {

struct LedgerOptions {
  std::int64_t dataset_size = 0;
  std::int64_t batch_size = 0;  // samples per batch; the remainder of an epoch is dropped
  // Number of batches to grant, including the batches of `start.untrained`.
  std::int64_t total_batches = 0;
  DataPosition start;
};

// Returns the number of batches from `start` to the end of epoch total_epochs - 1, including the
// batches of `start.untrained`. Ignores options.total_batches.
std::int64_t batches_left(const LedgerOptions& options, std::int64_t total_epochs);
// Returns the number of batches before `start` in all epochs, without those in `start.untrained`.
std::int64_t batches_before(const LedgerOptions& options);

// The ledger of a job's batches. Used by one thread at a time.
class Ledger {
 public:
  // Starts the ledger at options.start. Throws UsageError if this position does not fit the data
  // set, or if a batch is larger than the data set.
  explicit Ledger(LedgerOptions options);

  // Grants the next batch to this worker: first batches that were given back, then
  // `start.untrained`, then the epochs' order. Returns nullopt if all batches are granted; batches
  // may still be given back later.
  std::optional<SampleRange> grant(WorkerId worker);
  // Records that the worker's push `sequence` trained the batch. A batch that was given back and
  // not granted again may be marked too. Returns false, and records nothing, if the batch is now
  // granted to another worker; it is recorded when that worker has trained it.
  bool mark_trained(WorkerId worker, std::uint64_t sequence, const SampleRange& batch);
  // Takes back all batches that the worker holds; they are granted again, before all other batches.
  // Called when the worker is lost.
  void give_back(WorkerId worker) { keep(worker, {}); }
  // Takes back all batches of the worker except `batches`; they are granted again, before all
  // batches that were not granted yet. Called when only `batches` have reached the worker.
  void keep(WorkerId worker, std::span<const SampleRange> batches);
  // Records that the worker holds these batches. Called after a restart of server 0, which had
  // granted the batches after its last snapshot. Leaves out batches that are trained, that another
  // worker holds or that this ledger cannot grant.
  void adopt(WorkerId worker, std::span<const SampleRange> batches);
  // Takes back one batch of the worker, which is granted again. Called when the worker's push was
  // dropped.
  void give_back(WorkerId worker, const SampleRange& batch);

  bool holds_any(WorkerId worker) const;  // whether the worker holds a batch
  bool is_any_held() const noexcept { return !held_.empty(); }
  bool all_handed_out() const noexcept;
  bool all_trained() const noexcept { return batches_trained_ == options_.total_batches; }
  std::int64_t batches_trained() const noexcept { return batches_trained_; }  // since `start`
  std::int64_t samples_trained() const noexcept { return samples_trained_; }
  const LedgerOptions& options() const noexcept { return options_; }

  // as_of() returns the ledger's state at a snapshot. limits[w] is the last push of worker w that
  // the snapshot includes; batches trained by later pushes are untrained in this state. A batch
  // stays trained if its worker has no limit, or if forget() has dropped the record of its push.
  struct AsOf {
    DataPosition position;
    std::int64_t batches_trained = 0;
    std::int64_t samples_trained = 0;
  };
  // Batches in `untrained` count as untrained, although they were trained within the limits.
  AsOf as_of(const std::map<WorkerId, std::uint64_t>& limits,
             std::span<const SampleRange> untrained = {}) const;
  // Drops the records of pushes up to these sequences. as_of() then treats the batches of these
  // pushes as trained, whatever its limits are.
  void forget(const std::map<WorkerId, std::uint64_t>& limits);

 private:
  struct Trained {
    WorkerId worker = 0;
    std::uint64_t sequence = 0;
    SampleRange batch;
  };

  // Removes the batch from the batches that are still to be granted. Returns false if the batch is
  // not one of these batches.
  bool take(const SampleRange& batch);
  // Moves the batches between next_ and `batch` to passed_over_. Returns false, and changes
  // nothing, if `batch` is not in the remaining order.
  bool skip_to(const SampleRange& batch);

  const LedgerOptions options_;
  // The number of batches that were granted at least once. The next batch to grant for the first
  // time is the first batch of passed_over_ or, if passed_over_ is empty, the batch at next_ in the
  // epoch's order.
  std::int64_t handed_out_ = 0;
  std::deque<SampleRange> passed_over_;
  DataPosition next_;  // its member `untrained` is not used
  std::deque<SampleRange> given_back_;
  std::map<WorkerId, std::vector<SampleRange>> held_;  // batches by worker; no empty entries
  std::deque<Trained> remembered_;
  std::int64_t batches_trained_ = 0;
  std::int64_t samples_trained_ = 0;
};

}  // namespace syncopate::ps
