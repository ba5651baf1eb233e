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

namespace syncopate {

// Calls fill(sequence, slot) for sequence 0, 1, 2, ... on `threads` threads, one call at a time per
// slot. One thread calls take(). The destructor stops and joins the readers: it calls `wake` and
// waits for running calls of `fill`.
class BatchRing {
 public:
  using Fill = std::function<void(std::int64_t sequence, std::size_t slot)>;

  // slots >= 2: the consumer holds up to two slots, the readers fill the others. wake: ends every
  // wait inside `fill`, now and later; does not throw.
  BatchRing(std::size_t slots, int threads, Fill fill, std::function<void()> wake = {});
  ~BatchRing();
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // Returns the slot of the next batch. This slot and the one before it stay unchanged until the
  // next call. Throws what `fill` threw for that batch, and throws it again on every later call.
  std::size_t take();
  // Returns how many seconds take() has waited so far.
  std::chrono::nanoseconds waited() const noexcept { return waited_; }

 private:
  void read_batches();
  std::optional<std::int64_t> claim();  // the next batch to fill; nothing: the ring ends
  void finish(std::int64_t sequence, std::exception_ptr error);
  void stop();

  struct Slot {
    std::int64_t filled_with = -1;  // sequence of the batch in the slot
    std::exception_ptr error;
  };

  const Fill fill_;
  const std::function<void()> wake_;
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
