// The hand-over from reader threads to the one consumer: a ring of slots, one batch each, taken in
// order by the readers and emptied in order by the consumer, so that the sequence does not depend
// on who is fast. One lock per batch, never per sample; whoever has nothing to do sleeps.
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

// Calls fill(sequence, slot) for sequence 0, 1, 2, ... on `threads` threads, never two at a time
// for one slot. take() from one thread only. The destructor stops and joins the readers, blocked or
// not; a call of `fill` in progress is waited for, after `wake` was called where `fill` may wait
// for something itself.
class BatchRing {
 public:
  using Fill = std::function<void(std::int64_t sequence, std::size_t slot)>;

  // slots >= 2: at most two are held by the consumer, the others are being filled or ready.
  // wake: ends what `fill` waits for, now and from now on; it does not throw.
  BatchRing(std::size_t slots, int threads, Fill fill, std::function<void()> wake = {});
  ~BatchRing();
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // The slot of the next batch in sequence. It and its predecessor stay untouched until the next
  // call. Throws what `fill` threw for that batch, and the same on every later call.
  std::size_t take();
  // Time that take() stood waiting, so far.
  std::chrono::nanoseconds waited() const noexcept { return waited_; }

 private:
  void read_batches();
  std::optional<std::int64_t> claim();  // nothing: the ring is being destroyed
  void finish(std::int64_t sequence, std::exception_ptr error);
  void stop();

  struct Slot {
    std::int64_t filled_with = -1;  // sequence
    std::exception_ptr error;
  };

  const Fill fill_;
  const std::function<void()> wake_;
  std::int64_t taken_ = 0;  // the consumer's own
  std::chrono::nanoseconds waited_{0};

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable slot_freed_;
  std::condition_variable slot_filled_;
  std::vector<Slot> slots_;
  std::int64_t claimed_ = 0;  // sequences given to readers
  std::int64_t freed_ = 0;    // sequences the consumer is done with
  bool stopping_ = false;

  std::vector<std::jthread> readers_;
};

}  // namespace syncopate
