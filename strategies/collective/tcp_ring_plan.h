// Which block travels when: the geometry of one all-reduce on the ring. Pure arithmetic, the same
// on every rank.
//
// A row is n consecutive blocks, one of each remainder modulo n. In step k of a row, rank r sends
// the block of remainder r - 1 - k: its own addend (k = 0), a partial sum (k <= n - 2), a finished
// sum (k >= n - 1). So block b starts at rank b + 1, is complete at rank b and then goes round.
// Source: the ring of Baidu's all-reduce (Gibiansky 2017), with the order of collective.h.
#pragma once

#include <cstdint>

namespace syncopate {

// Elements [begin, begin + count) of a tensor. count = 0: the tensor has no such block.
struct BlockRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

class RingPlan {
 public:
  RingPlan() = default;
  // A tensor of `length` elements whose first is element `index` of the arena, on n >= 2 ranks.
  RingPlan(std::int64_t index, std::int64_t length, int n);

  std::int64_t rows() const noexcept { return rows_; }
  int steps() const noexcept { return 2 * n_ - 2; }
  // `remainder` is taken modulo n; it may be negative.
  BlockRange block(std::int64_t row, std::int64_t remainder) const noexcept;

 private:
  std::int64_t index_ = 0;
  std::int64_t length_ = 0;
  std::int64_t first_block_ = 0;
  std::int64_t rows_ = 0;
  int n_ = 2;
};

// The order in which a rank sends its blocks and its successor receives them: for t = 0, 1, ...
// and k = 0, 1, ...: step k of row t - kRowsApart * k. A step waits for the step before it of the
// same row, which was sent kRowsApart rows ago, so the wire is never idle for want of it.
class WireOrder {
 public:
  struct Place {
    std::int64_t row = 0;
    int step = 0;
  };

  WireOrder() = default;
  WireOrder(std::int64_t rows, int steps) noexcept;

  bool at_end() const noexcept { return time_ >= end_time_; }
  Place place() const noexcept { return {time_ - rows_apart_ * step_, step_}; }
  void advance() noexcept;
  // Whether `place` comes before place().
  bool is_past(Place place) const noexcept;

  static constexpr std::int64_t kRowsApart = 4;

 private:
  void begin_time() noexcept;

  std::int64_t rows_ = 0;
  std::int64_t rows_apart_ = 1;
  std::int64_t time_ = 0;
  std::int64_t end_time_ = 0;
  int steps_ = 0;
  int step_ = 0;
};

}  // namespace syncopate
