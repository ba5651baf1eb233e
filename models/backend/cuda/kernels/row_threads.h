// Divides the rows of a map [rows, channels] among groups of threads. Each group computes whole
// rows. Used by the kernels of layer norm, softmax and the losses.
#pragma once

#include <cstdint>
#include <type_traits>

#include "models/backend/cuda/kernels/columns.h"
#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {

// One warp computes a row with at most this many channels; one block computes a longer row.
inline constexpr int kMostChannelsOfWarp = 1024;

// Combines the values of the kLanes threads of a row, in an order that depends only on kLanes, and
// returns the result to each of them. All threads of a block must call this function. values:
// scratch in shared memory, [kThreads].
template <int kLanes, typename Value, typename Combine>
__device__ Value combined_in_row(Value value, Value* values, const Combine& combine) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kLanes;
  values[thread] = value;
  __syncthreads();
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) values[thread] = combine(values[thread], values[thread + half]);
    __syncthreads();
  }
  const Value result = values[thread - lane];
  __syncthreads();
  return result;
}

template <int kLanes, typename Value>
__device__ Value sum_of_row(Value value, Value* values) {
  return combined_in_row<kLanes>(value, values, [](Value a, Value b) { return a + b; });
}

// The part of a row that one thread computes: the packs of kWidth channels that begin at the
// channels `first`, `first` + kStep, `first` + 2 * kStep, ..., all below `end`. A thread beyond the
// last row has an empty part, but must still call combined_in_row() when the other threads of its
// block do.
template <int kLanes, int kWidth>
struct RowPart {
  static constexpr int kStep = kLanes * kWidth;
  std::int64_t row;
  int first;
  int end;
};

template <int kLanes, int kWidth>
__device__ RowPart<kLanes, kWidth> part_of_thread(std::int64_t rows, int channels) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kLanes) + thread / kLanes;
  return {row, thread % kLanes * kWidth, row < rows ? channels : 0};
}

// Returns the number of blocks of a grid with kLanes threads for each row.
template <int kLanes>
dim3 blocks_for_rows(std::int64_t rows) {
  const std::int64_t rows_of_block = kThreads / kLanes;
  return dim3(static_cast<unsigned>((rows + rows_of_block - 1) / rows_of_block));
}

// Chooses the launch parameters for a map [rows, channels], and calls start(lanes, width, blocks),
// which launches the kernel. Does not call start() if `rows` is 0. lanes: std::integral_constant,
// the number of threads per row. width: std::integral_constant, the number of elements per pack.
// blocks: the number of blocks of the grid.
template <typename T, typename Start>
void with_rows(std::int64_t rows, int channels, bool vectors, const Start& start) {
  if (rows == 0) return;
  with_width<T>(vectors, [&](auto width) {
    const auto with_lanes = [&](auto lanes) {
      start(lanes, width, blocks_for_rows<lanes.value>(rows));
    };
    if (channels <= kMostChannelsOfWarp) {
      with_lanes(std::integral_constant<int, 32>{});
    } else {
      with_lanes(std::integral_constant<int, kThreads>{});
    }
  });
}

}  // namespace syncopate::cuda
