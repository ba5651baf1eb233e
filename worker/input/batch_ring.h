// A ring of slots, one batch each, between reader threads and one consumer. Readers fill the slots
// and the consumer empties them in order, so the sequence does not depend on the speed of threads.
// One lock per batch; idle threads sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "worker/input/batch_source.h"

namespace syncopate {

struct BatchRingOptions {
  std::size_t slots = 2;  // 2 or more: the consumer holds up to two, the readers fill the others
  int threads = 1;
  ReaderTrace trace;
};

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

// Fills batches on `threads` threads. One thread calls take(). The destructor stops and joins the
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
  // Returns how many seconds take() has waited so far.
  std::chrono::nanoseconds waited() const noexcept { return waited_; }

 private:
  void read_batches(TraceThread* trace);
  std::optional<std::int64_t> claim();  // the next batch to fill; nothing: the ring ends
  void finish(std::int64_t sequence, std::exception_ptr error);
  void stop();

  struct Slot {
    std::int64_t filled_with = -1;  // sequence of the batch in the slot
    std::exception_ptr error;
  };

  const BatchRingCalls calls_;
  std::int64_t taken_ = 0;  // sequence of the next take(); used by the consumer only
  std::chrono::nanoseconds waited_{0};

  std::mutex mutex_;  // guards all members below but the threads
  std::condition_variable slot_freed_;
  std::condition_variable slot_filled_;
  std::vector<Slot> slots_;
  std::int64_t claimed_ = 0;  // number of batches that readers have begun to fill
  std::int64_t freed_ = 0;    // number of batches that the consumer has released
  bool stopping_ = false;

  std::vector<std::jthread> readers_;
};

}  // namespace syncopate
