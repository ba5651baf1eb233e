#include "ps/coordinator/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::ps {
namespace {

std::int64_t size_of(const SampleRange& range) { return range.end - range.begin; }

std::int64_t batches_of(const LedgerOptions& options, const SampleRange& range) {
  return (size_of(range) + options.batch_size - 1) / options.batch_size;
}

std::int64_t untrained_batches(const LedgerOptions& options) {
  std::int64_t batches = 0;
  for (const SampleRange& range : options.start.untrained) batches += batches_of(options, range);
  return batches;
}

void check_options(const LedgerOptions& options) {
  if (options.batch_size < 1 || options.batch_size > options.dataset_size) {
    throw UsageError(
        fmt::format("a batch of {} samples does not fit a data set of {}; use a batch "
                    "size from 1 to {}",
                    options.batch_size, options.dataset_size, options.dataset_size));
  }
  const DataPosition& start = options.start;
  const auto wrong = [&](const std::string& what) {
    throw UsageError(
        fmt::format("the data position (epoch {}, sample {}{}) does not fit a data set of "
                    "{} samples; check that the run is given the data it was started on",
                    start.epoch, start.offset, what, options.dataset_size));
  };
  if (start.epoch < 0 || start.offset < 0 || start.offset > options.dataset_size) wrong("");
  for (const SampleRange& range : start.untrained) {
    if (range.epoch < 0 || range.begin < 0 || range.begin >= range.end ||
        range.end > options.dataset_size) {
      wrong(fmt::format(", untrained {} to {} of epoch {}", range.begin, range.end, range.epoch));
    }
  }
}

// Continues with the next epoch if the rest of the current epoch is smaller than a batch.
void skip_remainder(const LedgerOptions& options, DataPosition& next) {
  if (next.offset + options.batch_size <= options.dataset_size) return;
  ++next.epoch;
  next.offset = 0;
}

// Moves `position` back over untrained batches directly before it. A run can start at a position
// without untrained ranges with any strategy.
void fold(const LedgerOptions& options, DataPosition& position) {
  std::vector<SampleRange>& untrained = position.untrained;
  while (!untrained.empty() && size_of(untrained.back()) == options.batch_size) {
    const SampleRange& last = untrained.back();
    const bool is_before_it = last.epoch == position.epoch && last.end == position.offset;
    const bool ends_epoch_before = last.epoch + 1 == position.epoch && position.offset == 0 &&
                                   last.end + options.batch_size > options.dataset_size;
    if (!is_before_it && !ends_epoch_before) return;
    position.epoch = last.epoch;
    position.offset = last.begin;
    untrained.pop_back();
  }
}

}  // namespace

std::int64_t batches_left(const LedgerOptions& options, std::int64_t total_epochs) {
  const DataPosition& start = options.start;
  const std::int64_t passed_over = untrained_batches(options);
  if (start.epoch >= total_epochs) return passed_over;
  return passed_over + (options.dataset_size - start.offset) / options.batch_size +
         (total_epochs - start.epoch - 1) * (options.dataset_size / options.batch_size);
}

std::int64_t batches_before(const LedgerOptions& options) {
  const DataPosition& start = options.start;
  return start.epoch * (options.dataset_size / options.batch_size) +
         start.offset / options.batch_size - untrained_batches(options);
}

Ledger::Ledger(LedgerOptions options)
    : options_(std::move(options)), next_{options_.start.epoch, options_.start.offset, {}} {
  check_options(options_);
  for (const SampleRange& range : options_.start.untrained) {
    for (std::int64_t begin = range.begin; begin < range.end; begin += options_.batch_size) {
      const std::int64_t end = std::min(begin + options_.batch_size, range.end);
      passed_over_.push_back({range.epoch, begin, end});
    }
  }
  skip_remainder(options_, next_);
}

std::optional<SampleRange> Ledger::grant(WorkerId worker) {
  if (all_handed_out()) return std::nullopt;
  SampleRange batch;
  if (!given_back_.empty()) {
    batch = given_back_.front();
    given_back_.pop_front();
  } else {
    ++handed_out_;
    if (!passed_over_.empty()) {
      batch = passed_over_.front();
      passed_over_.pop_front();
    } else {
      batch = {next_.epoch, next_.offset, next_.offset + options_.batch_size};
      next_.offset = batch.end;
      skip_remainder(options_, next_);
    }
  }
  held_[worker].push_back(batch);
  return batch;
}

bool Ledger::mark_trained(WorkerId worker, std::uint64_t sequence, const SampleRange& batch) {
  const auto holder = held_.find(worker);
  const auto held = holder == held_.end()
                        ? std::vector<SampleRange>::iterator()
                        : std::find(holder->second.begin(), holder->second.end(), batch);
  if (holder != held_.end() && held != holder->second.end()) {
    holder->second.erase(held);
    if (holder->second.empty()) held_.erase(holder);
  } else {
    const auto waiting = std::find(given_back_.begin(), given_back_.end(), batch);
    if (waiting == given_back_.end()) return false;
    given_back_.erase(waiting);
  }
  ++batches_trained_;
  samples_trained_ += size_of(batch);
  remembered_.push_back({worker, sequence, batch});
  return true;
}

void Ledger::keep(WorkerId worker, std::span<const SampleRange> batches) {
  const auto holder = held_.find(worker);
  if (holder == held_.end()) return;
  std::vector<SampleRange>& held = holder->second;
  const auto lost = std::stable_partition(held.begin(), held.end(), [&](const SampleRange& batch) {
    return std::ranges::find(batches, batch) != batches.end();
  });
  given_back_.insert(given_back_.begin(), lost, held.end());
  held.erase(lost, held.end());
  if (held.empty()) held_.erase(holder);
}

void Ledger::adopt(WorkerId worker, std::span<const SampleRange> batches) {
  for (const SampleRange& batch : batches) {
    if (take(batch)) held_[worker].push_back(batch);
  }
}

bool Ledger::take(const SampleRange& batch) {
  const auto erase_from = [&](std::deque<SampleRange>& waiting) {
    const auto at = std::ranges::find(waiting, batch);
    if (at == waiting.end()) return false;
    waiting.erase(at);
    return true;
  };
  if (erase_from(given_back_)) return true;
  if (handed_out_ == options_.total_batches) return false;
  if (!erase_from(passed_over_)) {
    if (!skip_to(batch)) return false;
    next_.offset = batch.end;
    skip_remainder(options_, next_);
  }
  ++handed_out_;
  return true;
}

bool Ledger::skip_to(const SampleRange& batch) {
  const std::int64_t size = options_.batch_size;
  const std::int64_t first = batch.epoch == next_.epoch ? next_.offset : 0;
  const bool is_in_order = batch.epoch >= next_.epoch && batch.begin >= first &&
                           (batch.begin - first) % size == 0 && batch.end - batch.begin == size &&
                           batch.end <= options_.dataset_size;
  const auto left =
      options_.total_batches - handed_out_ - static_cast<std::int64_t>(passed_over_.size());
  if (!is_in_order || left < 1) return false;
  std::deque<SampleRange> skipped;
  DataPosition next = next_;
  while (next.epoch != batch.epoch || next.offset != batch.begin) {
    if (std::cmp_greater_equal(skipped.size() + 1, left)) return false;
    skipped.push_back({next.epoch, next.offset, next.offset + size});
    next.offset += size;
    skip_remainder(options_, next);
  }
  passed_over_.insert(passed_over_.end(), skipped.begin(), skipped.end());
  next_ = next;
  return true;
}

void Ledger::give_back(WorkerId worker, const SampleRange& batch) {
  const auto holder = held_.find(worker);
  if (holder == held_.end()) return;
  const auto held = std::find(holder->second.begin(), holder->second.end(), batch);
  if (held == holder->second.end()) return;
  given_back_.push_back(batch);
  holder->second.erase(held);
  if (holder->second.empty()) held_.erase(holder);
}

bool Ledger::holds_any(WorkerId worker) const { return held_.contains(worker); }

bool Ledger::all_handed_out() const noexcept {
  return given_back_.empty() && handed_out_ == options_.total_batches;
}

Ledger::AsOf Ledger::as_of(const std::map<WorkerId, std::uint64_t>& limits,
                           std::span<const SampleRange> more_untrained) const {
  AsOf as_of{next_, batches_trained_, samples_trained_};
  std::vector<SampleRange>& untrained = as_of.position.untrained;
  untrained.assign(passed_over_.begin(), passed_over_.end());
  untrained.insert(untrained.end(), given_back_.begin(), given_back_.end());
  for (const auto& [worker, batches] : held_) {
    untrained.insert(untrained.end(), batches.begin(), batches.end());
  }
  const auto take_away = [&](const SampleRange& batch) {
    untrained.push_back(batch);
    --as_of.batches_trained;
    as_of.samples_trained -= size_of(batch);
  };
  std::ranges::for_each(more_untrained, take_away);
  for (const Trained& push : remembered_) {
    const auto entry = limits.find(push.worker);
    if (entry != limits.end() && push.sequence > entry->second) take_away(push.batch);
  }
  std::sort(untrained.begin(), untrained.end(), [](const SampleRange& a, const SampleRange& b) {
    return std::tie(a.epoch, a.begin) < std::tie(b.epoch, b.begin);
  });
  fold(options_, as_of.position);
  return as_of;
}

void Ledger::forget(const std::map<WorkerId, std::uint64_t>& limits) {
  std::erase_if(remembered_, [&](const Trained& push) {
    const auto entry = limits.find(push.worker);
    return entry != limits.end() && push.sequence <= entry->second;
  });
}

}  // namespace syncopate::ps
