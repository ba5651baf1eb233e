// Which samples are to be trained, by whom, and which are: an epoch's order cut into batches that
// are handed out on request. Fast workers ask more often; what a dead one had goes to others. Every
// sample is trained once per epoch while nobody dies, at least once when somebody does. A pure
// state machine, part of the coordinator.
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
  std::int64_t batch_size = 0;     // samples of a batch; an epoch's remainder is dropped
  std::int64_t total_batches = 0;  // to be handed out from `start` on, `start.untrained` included
  DataPosition start;
};

// Batches from `start` to the end of the epochs below total_epochs, `start.untrained` included.
// total_batches is not looked at.
std::int64_t batches_left(const LedgerOptions& options, std::int64_t total_epochs);
// Batches of all epochs that lie before `start`, without those it has still to train.
std::int64_t batches_before(const LedgerOptions& options);

// One thread at a time.
class Ledger {
 public:
  // Throws UsageError when the position does not fit the dataset, or no batch does.
  explicit Ledger(LedgerOptions options);

  // The next batch, to this worker: what was given back, what `start` had passed over, the epoch's
  // order. Nothing: all are handed out (some may come back).
  std::optional<SampleRange> grant(WorkerId worker);
  // The worker's push `sequence` trained the batch. False: it is not this worker's (any more): it
  // was given to another one, and counts when that one has trained it. A batch that nobody has
  // because it waits to be handed out again is this worker's.
  bool trained(WorkerId worker, std::uint64_t sequence, const SampleRange& batch);
  // It is gone: what it had not trained is handed out again, first of all.
  void give_back(WorkerId worker) { keep(worker, {}); }
  // Of what was handed out to it, it has these; the others have not reached it and are handed out
  // again, first of all.
  void keep(WorkerId worker, std::span<const SampleRange> batches);
  // Its push was dropped: this batch is handed out again.
  void give_back(WorkerId worker, const SampleRange& batch);

  bool holds_any(WorkerId worker) const;  // handed out to it, and not trained
  bool is_any_held() const noexcept { return !held_.empty(); }
  bool all_handed_out() const noexcept;
  bool all_trained() const noexcept { return batches_trained_ == options_.total_batches; }
  std::int64_t batches_trained() const noexcept { return batches_trained_; }  // since `start`
  std::int64_t samples_trained() const noexcept { return samples_trained_; }
  const LedgerOptions& options() const noexcept { return options_; }

  // The state as of a cut: batches that workers trained with later pushes than the cut's count as
  // untrained. A worker that is not in the cut counts with all it trained. Remembers pushes since
  // the last forget().
  struct AsOf {
    DataPosition position;
    std::int64_t batches_trained = 0;
    std::int64_t samples_trained = 0;
  };
  AsOf as_of(const std::map<WorkerId, std::uint64_t>& cut) const;
  // No later cut will ask about pushes up to these.
  void forget(const std::map<WorkerId, std::uint64_t>& cut);

 private:
  struct Trained {
    WorkerId worker = 0;
    std::uint64_t sequence = 0;
    SampleRange batch;
  };

  const LedgerOptions options_;
  // First-time batches: so many are handed out; then come passed_over_, then the order from next_.
  std::int64_t handed_out_ = 0;
  std::deque<SampleRange> passed_over_;
  DataPosition next_;  // its `untrained` is not used
  std::deque<SampleRange> given_back_;
  std::map<WorkerId, std::vector<SampleRange>> held_;  // no empty entries
  std::deque<Trained> remembered_;
  std::int64_t batches_trained_ = 0;
  std::int64_t samples_trained_ = 0;
};

}  // namespace syncopate::ps
