#include "bench/compare/virtual/timing_window.h"

#include <algorithm>
#include <cmath>

namespace syncopate::bench {
namespace {

constexpr std::int64_t kStretches = 10;

std::int64_t whole_stretches(std::int64_t updates) {
  return std::max<std::int64_t>(1, (updates + kStretches - 1) / kStretches) * kStretches;
}

// Of the mean of the values, over that mean.
double relative_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0.0;
  for (const double value : values) mean += value / n;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return mean > 0.0 ? std::sqrt(squares / (n - 1.0) / n) / mean : 0.0;
}

}  // namespace

TimingWindow::TimingWindow(std::int64_t warm_up, std::int64_t updates)
    : warm_up_(warm_up), updates_(whole_stretches(updates)) {
  if (warm_up_ == 0) marks_.emplace_back(0);
}

void TimingWindow::update(VirtualTime at, std::span<const WorkerAccount> accounts) {
  ++done_;
  if (done_ < warm_up_ || done_ > warm_up_ + updates_) return;
  if (done_ == warm_up_) begin_ = sum_of(accounts);
  if ((done_ - warm_up_) % (updates_ / kStretches) == 0) marks_.push_back(at);
  if (is_over()) end_ = sum_of(accounts);
}

TimingResult TimingWindow::result() const {
  TimingResult result{.updates = updates_,
                      .staleness_mean = staleness_.mean(),
                      .staleness_max = static_cast<std::int64_t>(staleness_.max())};
  const double seconds = seconds_of(marks_.back() - marks_.front());
  if (seconds > 0.0) result.updates_per_second = static_cast<double>(updates_) / seconds;
  std::vector<double> lengths;
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    lengths.push_back(seconds_of(marks_[i] - marks_[i - 1]));
  }
  result.relative_error = relative_error(lengths);
  const double all = seconds_of(end_.all() - begin_.all());
  if (all > 0.0) {
    result.compute_share = seconds_of(end_.compute - begin_.compute) / all;
    result.communication_share = seconds_of(end_.communication - begin_.communication) / all;
    result.peers_share = seconds_of(end_.peers - begin_.peers) / all;
  }
  return result;
}

}  // namespace syncopate::bench
