#include "worker/input/batch_ring.h"

#include <fmt/format.h>

#include <pthread.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// A timeout longer than any batch takes, because every wait must be bounded.
constexpr std::chrono::seconds kReaderTimeout(600);

TraceThread* trace_of(const ReaderTrace& readers, int reader) {
  if (readers.trace == nullptr) return nullptr;
  return &readers.trace->thread(readers.first_id + reader,
                                fmt::format("{} {}", readers.name, reader));
}

}  // namespace

BatchRing::BatchRing(const BatchRingOptions& options, BatchRingCalls calls)
    : calls_(std::move(calls)), slots_(options.slots) {
  check(options.slots >= 2 && options.threads >= 1, "a batch ring needs two slots and one thread");
  // Limits the threads: one beyond the number of slots would never find a free slot.
  const int useful = std::min(options.threads, static_cast<int>(options.slots));
  try {
    for (int i = 0; i < useful; ++i) {
      TraceThread* const trace = trace_of(options.trace, i);
      readers_.emplace_back([this, trace] { read_batches(trace); });
      const std::string thread_name = fmt::format("input-{}", i);
      pthread_setname_np(readers_.back().native_handle(), thread_name.c_str());
    }
  } catch (...) {
    stop();  // the system has no more threads: ends the running ones
    throw;
  }
}

BatchRing::~BatchRing() { stop(); }

void BatchRing::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  slot_freed_.notify_all();
  if (calls_.wake) calls_.wake();
  readers_.clear();  // joins the reader threads
}

std::size_t BatchRing::take() {
  std::unique_lock lock(mutex_);
  // The consumer held the last two batches; the slot of the older one is free now.
  const std::int64_t freed = std::max<std::int64_t>(taken_ - 1, 0);
  const bool frees_one = freed > freed_;
  freed_ = freed;
  if (frees_one) slot_freed_.notify_one();
  Slot& slot = slots_[static_cast<std::size_t>(taken_) % slots_.size()];
  if (slot.filled_with != taken_) {
    const auto start = std::chrono::steady_clock::now();
    if (!slot_filled_.wait_for(lock, kReaderTimeout, [&] { return slot.filled_with == taken_; })) {
      throw FileError(
          fmt::format("reading a batch of samples has taken more than {} s; does the file system "
                      "that holds --data answer?",
                      kReaderTimeout.count()));
    }
    waited_ += std::chrono::steady_clock::now() - start;
  }
  if (slot.error) std::rethrow_exception(slot.error);
  return static_cast<std::size_t>(taken_++) % slots_.size();
}

std::optional<std::int64_t> BatchRing::claim() {
  std::unique_lock lock(mutex_);
  const auto size = static_cast<std::int64_t>(slots_.size());
  slot_freed_.wait(lock, [&] { return stopping_ || claimed_ < freed_ + size; });
  if (stopping_) return std::nullopt;
  return claimed_++;
}

void BatchRing::finish(std::int64_t sequence, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[static_cast<std::size_t>(sequence) % slots_.size()];
    slot.error = std::move(error);
    slot.filled_with = sequence;
  }
  slot_filled_.notify_one();
}

void BatchRing::read_batches(TraceThread* trace) {
  while (const std::optional<std::int64_t> sequence = claim()) {
    std::exception_ptr error;
    try {
      if (!calls_.wait || calls_.wait(*sequence)) {
        const Span span(trace, TraceKind::kInput, *sequence);
        calls_.fill(*sequence, static_cast<std::size_t>(*sequence) % slots_.size());
      }
    } catch (...) {
      error = std::current_exception();
    }
    finish(*sequence, std::move(error));
  }
}

}  // namespace syncopate
