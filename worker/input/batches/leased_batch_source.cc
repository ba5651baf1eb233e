#include "worker/input/batches/leased_batch_source.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

// Batch slots beside the `prefetch` batches read ahead: two that the consumer holds
// (BatchSource::next), and one for the upcoming() batch while the consumer still holds both.
constexpr int kHeldWithUpcoming = 3;

}  // namespace

LeasedBatchSource::LeasedBatchSource(const Dataset& dataset, const LeasedInputOptions& options,
                                     LeaseSource source)
    : reader_(dataset, for_whole_batches(options.input), {}),
      lease_source_(std::move(source)),
      ring_options_(ring_options(options.input, reader_.batch_bytes(), kHeldWithUpcoming)),
      loss_divisor_factor_(options.loss_divisor_factor),
      dataset_size_(dataset.size()),
      slots_(reader_.make_slots(ring_options_)),
      leases_(slots_.size()),
      ring_(ring_options_,
            {.fill = [this](std::int64_t sequence, std::size_t slot) { fill(sequence, slot); },
             .wait = [this](std::int64_t sequence) { return lease(sequence); },
             .wake = [this] { stop(); }}) {}

InputOptions LeasedBatchSource::for_whole_batches(InputOptions options) {
  options.shard = {};
  options.drop_remainder = true;
  return options;
}

void LeasedBatchSource::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  try {
    lease_source_.stop();
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("while the input stopped: ") + error.what());
  }
}

bool LeasedBatchSource::await_lease() {
  std::unique_lock lock(mutex_);
  num_asked_ = taken_ + 1;
  asked_.notify_all();
  leased_.wait(lock, [&] { return num_leased_ > taken_ || ended_ || has_none_now_; });
  return num_leased_ > taken_;
}

const ps::SampleRange* LeasedBatchSource::upcoming() {
  {
    std::unique_lock lock(mutex_);
    num_asked_ = taken_ + 1;
    asked_.notify_all();
    leased_.wait(lock, [&] { return num_leased_ > taken_ || ended_; });
    if (num_leased_ > taken_) {
      upcoming_ = leases_[static_cast<std::size_t>(taken_) % leases_.size()];
    } else if (error_) {
      std::rethrow_exception(error_);
    } else {
      return nullptr;
    }
  }
  position_ = {upcoming_.epoch, upcoming_.begin, {}};
  return &upcoming_;
}

const Batch& LeasedBatchSource::next() {
  check(upcoming() != nullptr, "a batch is taken only while there is one");
  const std::size_t slot = ring_.take();
  ++taken_;
  position_ = {upcoming_.epoch, upcoming_.end, {}};
  return slots_[slot].batch;
}

InputCounters LeasedBatchSource::counters() const {
  return {std::chrono::duration<double>(ring_.waited()).count(), taken_, ring_.readers(),
          ring_.most_readers()};
}

void LeasedBatchSource::fill(std::int64_t sequence, std::size_t slot) {
  ps::SampleRange samples;
  {
    const std::lock_guard lock(mutex_);
    samples = leases_[static_cast<std::size_t>(sequence) % leases_.size()];
  }
  const std::int64_t count = samples.end - samples.begin;
  reader_.fill(samples, loss_divisor_factor_ * count, reader_.with_memory(slots_[slot]));
}

// Leases the samples of batch `sequence` from the job, after the samples of all earlier batches and
// at most ring_.ahead() batches ahead, because no other worker can train the samples of a lease.
// Returns false if there is no lease.
bool LeasedBatchSource::lease(std::int64_t sequence) {
  {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [&] {
      return stopping_ || ended_ ||
             (num_leased_ == sequence && sequence < num_asked_ + ring_.ahead());
    });
    if (stopping_ || ended_) return false;
  }
  std::optional<ps::SampleRange> leased;
  std::exception_ptr error;
  try {
    leased = await_next_lease();
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    has_none_now_ = false;
    if (leased) {
      leases_[static_cast<std::size_t>(sequence) % leases_.size()] = *leased;
      ++num_leased_;
    } else {
      error_ = std::move(error);
      ended_ = true;
    }
  }
  leased_.notify_one();
  asked_.notify_all();  // the next reader has its turn
  return leased.has_value();
}

std::optional<ps::SampleRange> LeasedBatchSource::await_next_lease() {
  for (;;) {
    const std::optional<ps::SampleRange> next = request_lease();
    if (!next || next->begin != next->end) return next;
    const std::lock_guard lock(mutex_);
    has_none_now_ = true;
    leased_.notify_one();
  }
}

std::optional<ps::SampleRange> LeasedBatchSource::request_lease() {
  const std::optional<ps::SampleRange> leased = lease_source_.next_lease();
  if (!leased || *leased == ps::SampleRange{}) return leased;
  const std::int64_t most = reader_.plan().most_samples();
  if (leased->epoch >= 0 && leased->begin >= 0 && leased->begin < leased->end &&
      leased->end <= dataset_size_ && leased->end - leased->begin <= most) {
    return leased;
  }
  throw UsageError(
      fmt::format("leased samples {} to {} of epoch {}; expected 1 to {} of a data set of {}; have "
                  "all tasks the same --data and batch size?",
                  leased->begin, leased->end, leased->epoch, most, dataset_size_));
}

}  // namespace syncopate
