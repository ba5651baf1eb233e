// The ledger of batches: it divides each epoch's order into batches, grants them to workers on
// request, and records which batches are trained. Batches of a lost worker are granted to others.
// Each whole batch is trained exactly once per epoch, or at least once if workers are lost; samples
// at the end of an epoch that fill no batch are not trained. A pure state machine, part of the
// coordinator.
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
  std::int64_t batch_size = 0;     // samples per batch; the remainder of an epoch is dropped
  std::int64_t total_batches = 0;  // number to grant from `start` on, `start.untrained` included
  DataPosition start;
};

// Returns the number of batches from `start` to the end of epoch total_epochs - 1,
// `start.untrained` included. Ignores options.total_batches.
std::int64_t batches_left(const LedgerOptions& options, std::int64_t total_epochs);
// Returns the number of batches of all epochs before `start`, without those in `start.untrained`.
std::int64_t batches_before(const LedgerOptions& options);

// A Ledger is used by one thread at a time.
class Ledger {
 public:
  // Throws UsageError when the start position does not fit the data set, or when no batch fits.
  explicit Ledger(LedgerOptions options);

  // Grants the next batch to this worker: first batches that were given back, then
  // `start.untrained`, then the epochs' order. Returns nothing when all batches are granted; some
  // may be given back later.
  std::optional<SampleRange> grant(WorkerId worker);
  // Records that the worker's push `sequence` trained the batch. Returns false if the batch has
  // been granted to another worker since; it counts when that worker has trained it. A batch that
  // was given back and not granted again counts for this worker.
  bool mark_trained(WorkerId worker, std::uint64_t sequence, const SampleRange& batch);
  // Called when the worker is lost: the batches that it holds are granted again, before all others.
  void give_back(WorkerId worker) { keep(worker, {}); }
  // Of the batches granted to the worker, `batches` have reached it; the others are granted again,
  // before batches that were not granted yet.
  void keep(WorkerId worker, std::span<const SampleRange> batches);
  // Grants these batches to the worker again: a ledger that was lost since had granted them to it.
  // Leaves out batches that are trained, that another worker holds or that this ledger cannot
  // grant.
  void adopt(WorkerId worker, std::span<const SampleRange> batches);
  // Called when the worker's push was dropped: its batch is granted again.
  void give_back(WorkerId worker, const SampleRange& batch);

  bool holds_any(WorkerId worker) const;  // whether it holds a batch
  bool is_any_held() const noexcept { return !held_.empty(); }
  bool all_handed_out() const noexcept;
  bool all_trained() const noexcept { return batches_trained_ == options_.total_batches; }
  std::int64_t batches_trained() const noexcept { return batches_trained_; }  // since `start`
  std::int64_t samples_trained() const noexcept { return samples_trained_; }
  const LedgerOptions& options() const noexcept { return options_; }

  // Returns the ledger's state as of a snapshot, given each worker's last push in the snapshot:
  // batches trained by later pushes count as untrained. All batches of a worker that is not listed
  // count. Considers the pushes since the last forget().
  struct AsOf {
    DataPosition position;
    std::int64_t batches_trained = 0;
    std::int64_t samples_trained = 0;
  };
  AsOf as_of(const std::map<WorkerId, std::uint64_t>& limits) const;
  // Drops the record of pushes up to these sequences: later calls of as_of() will not need them.
  void forget(const std::map<WorkerId, std::uint64_t>& limits);

 private:
  struct Trained {
    WorkerId worker = 0;
    std::uint64_t sequence = 0;
    SampleRange batch;
  };

  // Takes the batch out of those that are still to be granted, if it is one of them.
  bool take(const SampleRange& batch);
  // Moves the batches of the epochs' order before `batch` to passed_over_, if the batch is in it.
  bool skip_to(const SampleRange& batch);

  const LedgerOptions options_;
  // The number of batches granted for the first time. The next batches come from passed_over_, then
  // from the epoch's order at next_.
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
