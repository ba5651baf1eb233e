// A ring of batches between reader threads and one consumer. Each reader fills a slot (the memory
// of a batch) with one batch, and the consumer takes the batches in order. The sequence therefore
// does not depend on the speed or the number of readers, which may change while the ring runs. A
// mutex is locked a few times per batch, never per sample; idle threads sleep.
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
  int held = 2;  // number of slots that the consumer may read; 2 or more
  // The number of readers, and the number of batches that they prepare ahead of the consumer; both
  // may be tuned while the ring runs.
  InputTunerOptions input;
  ReaderTrace trace;

  // Returns the number of slots that the ring may use: `held` plus the largest number of batches
  // that may be prepared ahead.
  std::size_t num_slots() const noexcept;
};

// Returns the options of the BatchRing of a batch source. batch_bytes: the size of a slot in bytes.
// held: BatchRingOptions::held.
BatchRingOptions ring_options(const InputOptions& options, std::int64_t batch_bytes, int held);

// The functions that the readers of a ring call.
struct BatchRingCalls {
  // Fills slot `slot` with batch `sequence`. Called for the batches 0, 1, 2, ...; there is at most
  // one call at a time per slot.
  std::function<void(std::int64_t sequence, std::size_t slot)> fill;
  // Called before `fill` on the same thread. Waits until batch `sequence` may be filled; returns
  // false if there is no such batch. May be empty.
  std::function<bool(std::int64_t sequence)> wait = {};
  // Makes running and later calls of `wait` return; does not throw. May be empty.
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

  // Returns the slot of the next batch. This slot and the slot that the previous call returned stay
  // unchanged until take() is called again. Throws what `wait` or `fill` threw for this batch, and
  // throws it again on every later call.
  std::size_t take();
  // Returns how long take() has waited so far.
  std::chrono::nanoseconds waited() const noexcept { return waited_; }
  // Returns the present prefetch depth: how many batches the readers may prepare ahead of the
  // consumer. The ring may tune the depth while it runs. Any thread may call this.
  int ahead() const noexcept { return ahead_.load(std::memory_order_relaxed); }
  // Returns how many readers fill batches now. Only the consumer's thread may call this.
  int readers() const noexcept { return active_; }
  // Returns the largest number of readers that can be busy if the number of batches prepared ahead
  // is fixed; 0 if this number is tuned.
  int most_readers() const noexcept { return most_readers_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    std::int64_t filled_with = -1;  // sequence of the batch in the slot
    std::exception_ptr error;
  };
  // A batch that a reader is going to fill, and the slot for it.
  struct Claim {
    std::int64_t sequence = 0;
    std::size_t slot = 0;
  };

  void start_readers(int readers);
  void read_batches(int reader, TraceThread* trace);
  // Waits until reader number `reader` may fill a batch. Returns the next batch and a free slot;
  // nullopt if the reader must end.
  std::optional<Claim> claim(int reader);
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
  std::int64_t taken_ = 0;  // sequence of the batch that the next take() returns
  std::chrono::nanoseconds waited_{0};
  Clock::time_point took_at_ = Clock::now();  // when take() last returned

  std::mutex mutex_;  // guards the members below except readers_
  std::condition_variable slot_freed_;
  std::condition_variable slot_filled_;
  std::condition_variable readers_changed_;
  InputTuner tuner_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;     // slots without a batch; the last element is used next
  std::vector<std::size_t> slot_of_;  // slot of each batch, by sequence modulo the number of slots
  // Readers with a number below active_ claim batches, the other readers sleep. Written by the
  // consumer only.
  int active_ = 0;
  std::int64_t claimed_ = 0;   // number of batches that readers have begun to fill
  std::int64_t freed_ = 0;     // number of batches that the consumer has released
  bool were_blocked_ = false;  // whether a reader has found no free slot since the last take()
  bool stopping_ = false;

  std::vector<std::jthread> readers_;
};

}  // namespace syncopate
