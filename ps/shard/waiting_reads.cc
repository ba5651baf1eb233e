#include "ps/shard/waiting_reads.h"

#include <algorithm>

namespace syncopate::ps {

void WaitingReads::add(const Destination& read, std::uint64_t after) {
  unchecked_.push_back({arrivals_++, after, read});
}

void WaitingReads::on_advanced(WorkerId worker) {
  const auto found = by_worker_.find(worker);
  if (found == by_worker_.end()) return;
  unchecked_.insert(unchecked_.end(), found->second.begin(), found->second.end());
  by_worker_.erase(found);
}

void WaitingReads::take_due(const ConsistencyRule& rule, std::vector<Destination>& due) {
  const auto slowest = rule.slowest();
  while (!by_clock_.empty() && (!slowest || by_clock_.begin()->first <= *slowest)) {
    const Reads& reads = by_clock_.begin()->second;
    unchecked_.insert(unchecked_.begin(), reads.begin(), reads.end());
    by_clock_.erase(by_clock_.begin());
  }
  // Most often one clock's reads have come in front of newer ones, and are in order.
  if (!std::ranges::is_sorted(unchecked_, {}, &Read::arrival)) {
    std::ranges::sort(unchecked_, {}, &Read::arrival);
  }
  for (const Read& read : unchecked_) {
    const WorkerId worker = read.destination.worker;
    if (rule.may_read(worker, read.after)) {
      due.push_back(read.destination);
    } else if (!rule.includes(worker, read.after)) {
      by_worker_[worker].push_back(read);
    } else {
      by_clock_[*rule.least_clock_for(worker)].push_back(read);
    }
  }
  unchecked_.clear();
}

std::vector<Destination> WaitingReads::remove_if(
    const std::function<bool(const Destination&)>& is_void) {
  Reads removed;
  const auto remove_from = [&](Reads& reads) {
    std::erase_if(reads, [&](const Read& read) {
      if (!is_void(read.destination)) return false;
      removed.push_back(read);
      return true;
    });
  };
  const auto is_empty = [](const auto& entry) { return entry.second.empty(); };
  remove_from(unchecked_);
  for (auto& [worker, reads] : by_worker_) remove_from(reads);
  for (auto& [clock, reads] : by_clock_) remove_from(reads);
  std::erase_if(by_worker_, is_empty);
  std::erase_if(by_clock_, is_empty);
  std::ranges::sort(removed, {}, &Read::arrival);
  std::vector<Destination> destinations;
  for (const Read& read : removed) destinations.push_back(read.destination);
  return destinations;
}

void WaitingReads::clear() {
  unchecked_.clear();
  by_worker_.clear();
  by_clock_.clear();
}

}  // namespace syncopate::ps
