// Who gets which batches, and how far the job is by what came of them: the ledger, the requests
// that cannot be granted yet, and the sums that status reports show.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ps/coordinator/job.h"
#include "ps/coordinator/ledger.h"
#include "ps/coordinator/saved_job.h"
#include "ps/coordinator/stop_kind.h"

namespace syncopate::ps {

// One thread at a time. Workers in step lease nothing: the ledger counts their steps.
class LeaseQueue {
 public:
  explicit LeaseQueue(Job& job) : job_(job) {}

  // Training starts here. Throws UsageError for a position that the data does not have.
  void begin(const RunPosition& start);
  bool has_begun() const noexcept { return ledger_.has_value(); }

  void request(int worker, int count);
  // It is gone: others get what it had.
  void lose(int worker);
  // Its connection broke: of what was granted it has these, the rest has not reached it.
  void keep(int worker, std::span<const SampleRange> held);
  // True when one more batch counts as trained.
  bool trained(int worker, const wire::PushT& push);
  void dropped(int worker, const wire::PushT& push);
  // Nothing more is handed out. The first one counts.
  void stop(StopKind kind);
  std::optional<StopKind> stopped_by() const noexcept { return stopped_by_; }
  // Answers the requests that can be answered.
  void advance();

  // All is trained, or the job is stopping and nobody has anything any more.
  bool is_finished() const noexcept;
  bool all_trained() const noexcept { return ledger_->all_trained(); }
  JobProgress progress() const { return as_of({}); }
  // Batches of all epochs trained so far, those before `start` included.
  std::int64_t batches_trained() const;
  std::int64_t batches_per_epoch() const;
  bool has_ended_step() const;  // with the last batch

  void note_staleness(double mean, std::uint64_t max);
  wire::JobStatusT status() const;

  // From now on it can be asked how things were as of a cut (worker -> last push); until end_cut().
  void begin_cut();
  void end_cut();
  JobProgress as_of(const std::map<WorkerId, std::uint64_t>& cut) const {
    return progress_of(*ledger_, cut);
  }
  // With what is the leases' filled in. Of workers in step it knows what the cut's pushes that it
  // has not heard of yet will have trained.
  void save(const std::map<WorkerId, std::uint64_t>& cut, SavedJob& saved) const;
  void restore(const SavedJob& saved);

 private:
  struct Request {
    int worker = 0;
    int count = 0;
  };
  struct Sums {
    double loss = 0.0;
    std::int64_t correct = 0;
    void add(const Sums& more) {
      loss += more.loss;
      correct += more.correct;
    }
  };
  struct Heard {
    int worker = 0;
    std::uint64_t sequence = 0;
    Sums sums;
  };

  std::int64_t step_after(std::int64_t batches) const;
  bool count_step(int worker, std::uint64_t sequence);
  JobProgress progress_of(const Ledger& ledger, const std::map<WorkerId, std::uint64_t>& cut) const;
  void grant(Request& request);
  void finish(const Request& request);
  // Servers learn who has nothing to do, and wait for it no longer.
  void rest_idle_workers();
  bool is_waiting(int worker) const;

  Job& job_;
  std::optional<Ledger> ledger_;
  std::int64_t start_step_ = 0;
  std::int64_t start_batches_of_step_ = 0;  // of the step that is under way
  std::int64_t start_samples_ = 0;
  Sums sums_;
  std::optional<StopKind> stopped_by_;
  std::deque<Request> requests_;  // first come, first served
  std::set<int> dismissed_;       // workers that were told that there is no more
  bool remembers_ = false;        // a cut is under way
  Sums sums_before_;              // of what was heard before it began
  std::vector<Heard> heard_;      // since
  double staleness_mean_ = 0.0;
  std::uint64_t staleness_max_ = 0;
};

}  // namespace syncopate::ps
