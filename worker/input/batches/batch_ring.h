// A ring of batches between reader threads and one consumer. Readers fill slots, one batch each,
// and the consumer empties them in order, so the sequence does not depend on the speed or the
// number of threads, which may change while the ring runs. One lock per batch; idle threads sleep.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "worker/input/batches/batch_source.h"
#include "worker/input/batches/input_tuner.h"

namespace syncopate {

struct BatchRingOptions {
  int held = 2;  // slots that the consumer holds: 2 or more
  // How many readers there are and how many slots they fill ahead of the consumer; both may be
  // tuned while the ring runs.
  InputTunerOptions input;
  ReaderTrace trace;

  // The slots that the ring may use: those that are held, and the most that are filled ahead.
  std::size_t num_slots() const noexcept;
};

// Returns the options of a source's ring. batch_bytes: the memory of a slot.
BatchRingOptions ring_options(const InputOptions& options, std::int64_t batch_bytes, int held);

// What the readers of a ring call.
struct BatchRingCalls {
  // Fills a slot with batch `sequence`. Called for 0, 1, 2, ..., one call at a time per slot.
  std::function<void(std::int64_t sequence, std::size_t slot)> fill;
  // Waits, before `fill` and on the same thread, until the batch may be filled; returns false if
  // there is none. May be empty.
  std::function<bool(std::int64_t sequence)> wait = {};
  // Ends every call of `wait`, now and later; does not throw. May be empty.
  std::function<void()> wake = {};
};

// Fills batches on reader threads. One thread calls take(). The destructor stops and joins the
// readers: it calls `wake` and waits for running calls of `fill`.
class BatchRing {
 public:
  BatchRing(const BatchRingOptions& options, BatchRingCalls calls);
  ~BatchRing();
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // Returns the slot of the next batch. This slot and the one before it stay unchanged until the
  // next call. Throws what the calls threw for that batch, and throws it again on every later call.
  std::size_t take();
  // Returns how long take() has waited so far.
  std::chrono::nanoseconds waited() const noexcept { return waited_; }
  // How many batches are prepared ahead now. From any thread.
  int ahead() const noexcept { return ahead_.load(std::memory_order_relaxed); }
  // How many readers fill batches now. For the consumer's thread.
  int readers() const noexcept { return active_; }
  // How many readers a fixed number of batches ahead allows; 0: the number of batches is tuned.
  int most_readers() const noexcept { return most_readers_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    std::int64_t filled_with = -1;  // sequence of the batch in the slot
    std::exception_ptr error;
  };
  // A batch that a reader fills.
  struct Claim {
    std::int64_t sequence = 0;
    std::size_t slot = 0;
  };

  void start_readers(int readers);
  void read_batches(int reader, TraceThread* trace);
  std::optional<Claim> claim(int reader);  // the next batch to fill; nothing: the ring ends
  void finish(const Claim& filled, std::exception_ptr error, double seconds);
  void apply_tuning(int readers);
  void free_slots();
  std::size_t& slot_of(std::int64_t sequence) {
    return slot_of_[static_cast<std::size_t>(sequence) % slot_of_.size()];
  }
  void stop();

  const BatchRingCalls calls_;
  const ReaderTrace trace_;
  const int held_;
  const bool is_tuned_;
  const int most_readers_;
  std::atomic<int> ahead_;

  // The following members are used by the consumer only.
  std::int64_t taken_ = 0;  // sequence of the next take()
  std::chrono::nanoseconds waited_{0};
  Clock::time_point took_at_ = Clock::now();  // when take() last returned

  std::mutex mutex_;  // guards the members below but the threads
  std::condition_variable slot_freed_;
  std::condition_variable slot_filled_;
  std::condition_variable readers_changed_;
  InputTuner tuner_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;     // slots without a batch; the last one is used next
  std::vector<std::size_t> slot_of_;  // by sequence, modulo the number of slots
  int active_ = 0;  // readers with a lower number claim batches, the others rest; written by the
                    // consumer only
  std::int64_t claimed_ = 0;   // number of batches that readers have begun to fill
  std::int64_t freed_ = 0;     // number of batches that the consumer has released
  bool were_blocked_ = false;  // a reader has found no free slot since the last take()
  bool stopping_ = false;

  std::vector<std::jthread> readers_;
};

}  // namespace syncopate
