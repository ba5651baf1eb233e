#include "strategies/collective/tcp_ring_plan.h"

#include <algorithm>

#include "strategies/collective/collective.h"

namespace syncopate {
namespace {

std::int64_t floor_of_quotient(std::int64_t a, std::int64_t b) noexcept {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

}  // namespace

RingPlan::RingPlan(std::int64_t index, std::int64_t length, int n)
    : index_(index),
      length_(length),
      first_block_(floor_of_quotient(index, kBlockElements)),
      n_(n) {
  if (length == 0) return;
  const std::int64_t blocks =
      floor_of_quotient(index + length - 1, kBlockElements) - first_block_ + 1;
  rows_ = (blocks + n - 1) / n;
}

BlockRange RingPlan::block(std::int64_t row, std::int64_t remainder) const noexcept {
  const std::int64_t column = ((remainder - first_block_) % n_ + n_) % n_;
  const std::int64_t block_begin = (first_block_ + row * n_ + column) * kBlockElements - index_;
  const std::int64_t begin = std::max<std::int64_t>(block_begin, 0);
  const std::int64_t end = std::min(block_begin + kBlockElements, length_);
  return {begin, std::max<std::int64_t>(end - begin, 0)};
}

WireOrder::WireOrder(std::int64_t rows, int steps) noexcept
    : rows_(rows), rows_apart_(std::clamp<std::int64_t>(rows, 1, kRowsApart)), steps_(steps) {
  end_time_ = rows == 0 ? 0 : rows + rows_apart_ * (steps - 1);
  begin_time();
}

void WireOrder::begin_time() noexcept {
  const std::int64_t rows_behind = time_ - rows_ + 1;
  step_ = rows_behind <= 0 ? 0 : static_cast<int>((rows_behind + rows_apart_ - 1) / rows_apart_);
}

void WireOrder::advance() noexcept {
  ++step_;
  while (!at_end() && (step_ >= steps_ || time_ - rows_apart_ * step_ < 0)) {
    ++time_;
    begin_time();
  }
}

bool WireOrder::is_past(Place place) const noexcept {
  const std::int64_t its_time = place.row + rows_apart_ * place.step;
  return its_time < time_ || (its_time == time_ && place.step < step_);
}

}  // namespace syncopate
