#include "worker/input/batches/batch_ring.h"

#include <fmt/format.h>

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

// A timeout longer than any batch takes, because every wait must be bounded.
constexpr std::chrono::seconds kReaderTimeout(600);
constexpr int kAheadOfReader = 8;  // batches

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

TraceThread* trace_of(const ReaderTrace& readers, int reader) {
  if (readers.trace == nullptr) return nullptr;
  return &readers.trace->thread(readers.first_id + reader,
                                fmt::format("{} {}", readers.name, reader));
}

}  // namespace

std::size_t BatchRingOptions::num_slots() const noexcept {
  const int ahead = input.tunes_ahead ? std::max(input.most_ahead, input.ahead) : input.ahead;
  return static_cast<std::size_t>(ahead) + static_cast<std::size_t>(held);
}

BatchRingOptions ring_options(const InputOptions& options, std::int64_t batch_bytes, int held) {
  const Autotune& autotune = options.autotune;
  const int readers = autotune.threads ? 1 : options.threads;
  const int cpus = std::max(1, autotune.cpus);
  const std::int64_t fitting = autotune.most_bytes / std::max<std::int64_t>(batch_bytes, 1) - held;
  // Beyond a few batches for each reader more of them gain nothing.
  const auto most_ahead = static_cast<int>(
      std::clamp<std::int64_t>(fitting, readers + 1, kAheadOfReader * std::max(cpus, readers)));
  return {.held = held,
          .input = {.tunes_readers = autotune.threads,
                    .tunes_ahead = autotune.prefetch,
                    .readers = readers,
                    .ahead = autotune.prefetch ? readers + 1 : options.prefetch,
                    .most_readers = cpus,
                    .most_ahead = most_ahead,
                    .cpus = cpus,
                    .lanes = autotune.lanes},
          .trace = options.trace};
}

BatchRing::BatchRing(const BatchRingOptions& options, BatchRingCalls calls)
    : calls_(std::move(calls)),
      trace_(options.trace),
      held_(options.held),
      is_tuned_(options.input.is_on()),
      most_readers_(options.input.tunes_ahead ? 0 : std::max(1, options.input.ahead)),
      ahead_(options.input.ahead),
      tuner_(options.input),
      slots_(options.num_slots()),
      slot_of_(slots_.size()) {
  check(options.held >= 2 && options.input.ahead >= 0 && options.input.readers >= 1,
        "a batch ring needs two slots and one thread");
  free_.reserve(slots_.size());
  for (std::size_t slot = slots_.size(); slot-- > 0;) free_.push_back(slot);
  // Limits the threads: one beyond the number of slots would never find a free slot.
  active_ = std::min(options.input.readers, static_cast<int>(slots_.size()));
  try {
    start_readers(active_);
  } catch (...) {
    stop();  // the system has no more threads: ends the running ones
    throw;
  }
}

BatchRing::~BatchRing() { stop(); }

void BatchRing::start_readers(int readers) {
  while (static_cast<int>(readers_.size()) < readers) {
    const auto reader = static_cast<int>(readers_.size());
    TraceThread* const trace = trace_of(trace_, reader);
    readers_.emplace_back([this, reader, trace] { read_batches(reader, trace); });
    const std::string thread_name = fmt::format("input-{}", reader);
    pthread_setname_np(readers_.back().native_handle(), thread_name.c_str());
  }
}

void BatchRing::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  slot_freed_.notify_all();
  readers_changed_.notify_all();
  if (calls_.wake) calls_.wake();
  readers_.clear();  // joins the reader threads
}

std::size_t BatchRing::take() {
  const Clock::time_point asked = is_tuned_ ? Clock::now() : Clock::time_point();
  std::unique_lock lock(mutex_);
  free_slots();
  const Slot* slot = nullptr;
  const auto is_filled = [&] {
    if (claimed_ <= taken_) return false;
    slot = &slots_[slot_of(taken_)];
    return slot->filled_with == taken_;
  };
  std::chrono::nanoseconds waited{0};
  if (!is_filled()) {
    const Clock::time_point start = Clock::now();
    if (!slot_filled_.wait_for(lock, kReaderTimeout, is_filled)) {
      throw FileError(
          fmt::format("reading a batch of samples has taken more than {} s; does the file system "
                      "that holds --data answer?",
                      kReaderTimeout.count()));
    }
    waited = Clock::now() - start;
    waited_ += waited;
  }
  if (slot->error) std::rethrow_exception(slot->error);
  const std::size_t taken = slot_of(taken_++);
  if (!is_tuned_) return taken;
  tuner_.add_take(seconds(asked - took_at_), seconds(waited), std::exchange(were_blocked_, false));
  const int readers = tuner_.readers();
  lock.unlock();
  apply_tuning(readers);
  took_at_ = Clock::now();
  return taken;
}

// Starts, wakes or rests readers as the tuner says.
void BatchRing::apply_tuning(int readers) {
  if (readers == active_ && tuner_.ahead() == ahead()) return;
  int started = readers;
  try {
    start_readers(readers);
  } catch (const std::exception& error) {
    started = std::max(1, static_cast<int>(readers_.size()));
    log(LogLevel::kWarning, fmt::format("--input-threads: the system starts no more than {} "
                                        "threads that read samples: {}",
                                        started, error.what()));
  }
  {
    const std::lock_guard lock(mutex_);
    if (started < readers) tuner_.limit_readers(started);
    active_ = started;
    ahead_.store(tuner_.ahead(), std::memory_order_relaxed);
  }
  slot_freed_.notify_all();
  readers_changed_.notify_all();
}

// The consumer held the last two batches; the slot of the older one is free now.
void BatchRing::free_slots() {
  const std::int64_t freed = std::max<std::int64_t>(taken_ - 1, 0);
  if (freed == freed_) return;
  free_.push_back(slot_of(freed_));
  freed_ = freed;
  slot_freed_.notify_one();
}

std::optional<BatchRing::Claim> BatchRing::claim(int reader) {
  std::unique_lock lock(mutex_);
  const auto has_slot = [&] { return claimed_ < freed_ + ahead() + held_; };
  for (;;) {
    readers_changed_.wait(lock, [&] { return stopping_ || reader < active_; });
    if (!has_slot()) were_blocked_ = true;
    slot_freed_.wait(lock, [&] { return stopping_ || reader >= active_ || has_slot(); });
    if (stopping_) return std::nullopt;
    if (reader < active_) break;
  }
  const Claim claim{claimed_++, free_.back()};
  free_.pop_back();
  slot_of(claim.sequence) = claim.slot;
  return claim;
}

void BatchRing::finish(const Claim& filled, std::exception_ptr error, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    if (is_tuned_ && !error && seconds > 0.0) tuner_.add_batch(seconds);
    Slot& slot = slots_[filled.slot];
    slot.error = std::move(error);
    slot.filled_with = filled.sequence;
  }
  slot_filled_.notify_one();
}

void BatchRing::read_batches(int reader, TraceThread* trace) {
  while (const std::optional<Claim> next = claim(reader)) {
    std::exception_ptr error;
    double spent = 0.0;
    try {
      if (!calls_.wait || calls_.wait(next->sequence)) {
        const Span span(trace, TraceKind::kInput, next->sequence);
        const Clock::time_point start = Clock::now();
        calls_.fill(next->sequence, next->slot);
        spent = seconds(Clock::now() - start);
      }
    } catch (...) {
      error = std::current_exception();
    }
    finish(*next, std::move(error), spent);
  }
}

}  // namespace syncopate
