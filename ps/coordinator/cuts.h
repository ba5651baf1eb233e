// Cuts, one at a time: why one is due, the two rounds with the servers, and who is appointed to
// evaluate it or write a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/saved_job.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {

// One thread at a time.
class Cuts {
 public:
  Cuts(Job& job, LeaseQueue& leases) : job_(job), leases_(leases) {}

  void request_snapshot();
  // One more batch counts as trained.
  void count_batch();

  void hear(int server, const wire::FrozenT& frozen);
  void hear(int server, const wire::CutDoneT& done);
  void hear(int worker, const wire::AppointmentDoneT& done);
  // Another worker is appointed if this one was.
  void lose_worker(int worker);
  // It is about to evaluate or write what the cut has copied.
  bool has_appointed(int worker) const {
    return stage_ == Stage::kAppointing && is_told_ && appointed_ == worker;
  }
  // It may not have heard of its appointment.
  void tell_again(int worker);
  // A server is gone: what the cut was for is still due.
  void abandon();
  // All go back to an earlier cut: nothing is due any more, and later cuts do not count.
  void go_back_to(std::uint64_t cut);
  // Begins a cut that is due, and takes the one under way as far as it gets.
  void advance();

  // The last cut has been dealt with.
  bool is_final_done() const noexcept { return is_final_done_; }

  // As of the cut under way if its limits are known, else as of now.
  SavedJob save() const;
  // Snapshots that can be gone back to, by cut.
  const std::map<std::uint64_t, SavedJob>& kept() const noexcept { return kept_; }
  void keep(SavedJob saved);

 private:
  enum class Stage : std::uint8_t { kNone, kFreezing, kCopying, kAppointing };
  struct Duties {
    bool snapshot = false;
    bool evaluates = false;
    bool writes_checkpoint = false;
    bool any() const { return snapshot || evaluates || writes_checkpoint; }
  };
  struct Limit {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;
    bool is_of_shard_0 = false;  // it had met this worker when it froze
  };

  bool may_begin() const;
  void begin();
  void send_cut();
  bool is_copied() const;
  void finish_copying();
  void appoint();
  void release();
  bool is_of_current(Stage stage, std::uint64_t cut) const {
    return stage_ == stage && job_.last_cut == cut;
  }
  bool all_answered() const { return static_cast<int>(answered_.size()) == job_.num_servers(); }
  std::map<WorkerId, std::uint64_t> sequences() const;

  Job& job_;
  LeaseQueue& leases_;
  Duties due_;
  bool is_final_done_ = false;
  std::map<std::uint64_t, SavedJob> kept_;

  // Of the cut under way, whose number is job_.last_cut.
  Stage stage_ = Stage::kNone;
  Duties duties_;
  bool is_final_ = false;
  std::set<int> answered_;  // servers, in this stage
  std::map<WorkerId, Limit> limits_;
  std::map<WorkerId, StalenessHistogram> staleness_;
  JobProgress progress_;  // as of it
  std::optional<int> appointed_;
  bool is_told_ = false;  // the appointed worker
};

}  // namespace syncopate::ps
