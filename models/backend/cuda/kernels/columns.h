// Defines how the threads of a kernel are divided over a map [rows, channels], for sums over the
// rows and for element-wise work.
//
// A pack is a few adjacent channels of a row, at most 16 bytes. A thread processes one pack of
// channels in many rows, so that values per channel are loaded once. A block covers `lanes` packs
// and kThreads / lanes rows at a time. Along the channels, the map is divided into tiles of one
// block's width; along the rows, the blocks of a tile take turns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "models/backend/cuda/kernels/launch.h"
#include "models/backend/cuda/kernels/pack.h"

namespace syncopate::cuda {

inline constexpr int kThreads = 256;  // the number of threads of a block
// Grids are sized by constants for an H200 (132 multiprocessors), because the order of a sum must
// not depend on the device. Kernels that sum have at most kMostBlocksAtOnce blocks, the number that
// can run at once, so that there are few partial sums. Kernels that read rows ahead have this
// limit, too. Other kernels have many more blocks, so that the last blocks to run are a small part
// of the work. A multiprocessor runs kBlocksAtOnce blocks at once if a thread uses at most 64
// registers.
inline constexpr int kBlocksAtOnce = 4;
inline constexpr int kMostBlocksAtOnce = 132 * kBlocksAtOnce;
inline constexpr int kMostBlocks = 132 * 32;
inline constexpr int kWidestTile = 32;  // packs of a tile, at most; a warp reads 512 bytes of a row

struct ColumnGrid {
  std::int64_t rows = 0;
  int channels = 0;
  int lanes = 1;
  int tiles = 1;
  int row_blocks = 1;
};

// Returns the grid of a kernel for a map [rows, channels], in which a thread processes packs of
// `width` adjacent channels. A thread processes about rows_of_thread rows, or more if the grid
// would have more than about most_blocks blocks.
inline ColumnGrid column_grid(std::int64_t rows, int channels, int width, int most_blocks,
                              int rows_of_thread) {
  ColumnGrid grid{rows, channels};
  const int packs = (channels + width - 1) / width;
  grid.tiles = (packs + kWidestTile - 1) / kWidestTile;
  grid.lanes = (packs + grid.tiles - 1) / grid.tiles;
  const std::int64_t rows_of_block = static_cast<std::int64_t>(kThreads / grid.lanes);
  const std::int64_t wanted =
      (rows + rows_of_block * rows_of_thread - 1) / (rows_of_block * rows_of_thread);
  const std::int64_t most = std::max(1, most_blocks / grid.tiles);
  grid.row_blocks = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
  return grid;
}

// The position of a thread in the map. A thread beyond the last channel, or beyond the last whole
// row of its block, is idle and does no work.
struct ColumnPlace {
  int lane = 0;
  int row_of_block = 0;
  int channel = 0;  // the first channel of the thread's pack
  bool idle = false;
  std::int64_t first_row = 0, row_step = 0;
};

template <int kWidth>
__device__ ColumnPlace column_place(const ColumnGrid& grid) {
  ColumnPlace place;
  const int rows_of_block = kThreads / grid.lanes;
  place.row_of_block = static_cast<int>(threadIdx.x) / grid.lanes;
  place.lane = static_cast<int>(threadIdx.x) - place.row_of_block * grid.lanes;
  place.channel = (static_cast<int>(blockIdx.x) * grid.lanes + place.lane) * kWidth;
  place.idle = place.row_of_block >= rows_of_block || place.channel >= grid.channels;
  place.first_row = static_cast<std::int64_t>(blockIdx.y) * rows_of_block +
                    static_cast<std::int64_t>(place.row_of_block);
  place.row_step = static_cast<std::int64_t>(gridDim.y) * rows_of_block;
  return place;
}

// Calls use(first, read(first)) for each row that belongs to the thread, in order. `first` is the
// index in the map at which the thread's pack of channels begins in this row. kRows rows are read
// before the first of them is used, because with only one 16-byte load in flight per thread, a
// multiprocessor waits for memory. The last rows have a separate loop, because conditional reads
// would need more registers.
template <int kRows, typename Read, typename Use>
__device__ void for_packs_of_thread(const ColumnPlace& place, const ColumnGrid& grid,
                                    const Read& read, const Use& use) {
  const std::int64_t step = place.row_step * grid.channels;
  const std::int64_t end = grid.rows * grid.channels;
  std::int64_t first = place.first_row * grid.channels + place.channel;
  for (; first + (kRows - 1) * step < end; first += kRows * step) {
    decltype(read(first)) inputs[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) inputs[i] = read(first + i * step);
#pragma unroll
    for (int i = 0; i < kRows; ++i) use(first + i * step, inputs[i]);
  }
  if constexpr (kRows > 1) {
    for (; first < end; first += step) use(first, read(first));
  }
}

// Returns the number of blocks of a grid with one thread for each of `count` indices, but at most
// kMostBlocks. With kMostBlocks, a thread may process several indices.
inline dim3 blocks_for(std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(std::min<std::int64_t>(blocks, kMostBlocks)));
}

// Calls visit(i) for each index i in [0, count) that belongs to the calling thread, in order. Every
// index belongs to exactly one thread of the grid.
template <typename Visit>
__device__ void for_indices_of_thread(std::int64_t count, const Visit& visit) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    visit(i);
  }
}

// Returns the launch parameters of a kernel with one thread per channel.
inline Launch one_thread_per_channel(const char* name, int channels, cudaStream_t stream) {
  const int blocks = (channels + kThreads - 1) / kThreads;
  return {name, dim3(static_cast<unsigned>(blocks)), kThreads, stream};
}
__device__ inline int channel_of_thread() {
  return static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
}

// Whether rows_kernel reads several rows before it computes the first of them (reads ahead). An
// Operation may allow this only if it reads no other rows than the rows that it writes.
template <typename Operation>
inline constexpr bool kReadsAhead = requires {
  Operation::kRowsAtOnce;
};

// The kernel that applies Operation to a map [rows, channels]. A pack is kWidth adjacent channels
// of a row. An operation that does not read ahead has the member at<kWidth>(row, channel), which
// computes one pack. An operation that reads ahead has these members:
// - kRowsAtOnce: the number of rows that a thread reads before it computes the first of them.
// - constants<kWidth>(channel): returns the constants of the pack that begins at `channel`.
// - read<kWidth>(first): returns the pack that begins at index `first` of the map.
// - write(first, constants, inputs): computes and writes this pack, where `inputs` is the result of
//   read(first).
template <int kWidth, typename Operation>
__global__ void __launch_bounds__(kThreads, kReadsAhead<Operation> ? kBlocksAtOnce : 1)
    rows_kernel(Operation operation, ColumnGrid grid) {
  const ColumnPlace place = column_place<kWidth>(grid);
  if (place.idle) return;
  if constexpr (kReadsAhead<Operation>) {
    const auto constants = operation.template constants<kWidth>(place.channel);
    // Goes from the last row to the first. Most of these kernels run after a kernel that reads the
    // same map from the first row to the last, so the last rows are still in the L2 cache.
    const std::int64_t ends = (grid.rows - 1) * grid.channels + 2 * place.channel;
    for_packs_of_thread<Operation::kRowsAtOnce>(
        place, grid,
        [&](std::int64_t first) { return operation.template read<kWidth>(ends - first); },
        [&](std::int64_t first, const auto& inputs) {
          operation.write(ends - first, constants, inputs);
        });
  } else {
    for (std::int64_t row = place.first_row; row < grid.rows; row += place.row_step) {
      operation.template at<kWidth>(row, place.channel);
    }
  }
}

// Starts rows_kernel, which applies `operation` to each element of a map [rows, channels]. If
// `vectors`, a thread reads packs of 16 bytes; otherwise it reads single elements.
template <typename T, typename Operation>
void for_each_row(const char* name, const Operation& operation, std::int64_t rows, int channels,
                  bool vectors, cudaStream_t stream) {
  if (rows == 0) return;
  int most_blocks = kMostBlocks;
  int rows_of_thread = 1;
  if constexpr (kReadsAhead<Operation>) {
    most_blocks = kMostBlocksAtOnce;  // so few that all blocks go through the map together
    rows_of_thread = Operation::kRowsAtOnce;
  }
  with_width<T>(vectors, [&](auto width) {
    const ColumnGrid grid = column_grid(rows, channels, width, most_blocks, rows_of_thread);
    const dim3 blocks(static_cast<unsigned>(grid.tiles), static_cast<unsigned>(grid.row_blocks));
    launch({name, blocks, kThreads, stream}, rows_kernel<width.value, Operation>, operation, grid);
  });
}

// The sample, row and column of a pixel in maps [n, height, width]. pixel_of() computes them from
// the pixel's index in memory.
struct Pixel {
  std::int64_t n = 0;
  int row = 0, column = 0;
};

__device__ inline Pixel pixel_of(std::int64_t index, int height, int width) {
  // A division of 64-bit integers costs several times as much as a division of 32-bit integers.
  if (index <= std::numeric_limits<int>::max()) {
    const auto line = static_cast<int>(index) / width;
    const int n = line / height;
    return {n, line - n * height, static_cast<int>(index) - line * width};
  }
  const std::int64_t line = index / width;
  const std::int64_t n = line / height;
  return {n, static_cast<int>(line - n * height), static_cast<int>(index - line * width)};
}

// Returns the index of a pixel in memory, in maps [n, height, width].
__device__ inline std::int64_t index_of(std::int64_t n, int row, int column, int height,
                                        int width) {
  return (n * height + row) * width + column;
}

}  // namespace syncopate::cuda
