// Sums over the rows of a map [rows, channels] in two kernels. In the first kernel, a thread adds
// its rows (up to hundreds) in f32; a block then adds the sums of its threads in f64 and writes one
// partial sum per channel to scratch. The second kernel adds the partial sums in f64. The order of
// additions depends only on the sizes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/backend/cuda/kernels/columns.h"

namespace syncopate::cuda {

inline constexpr int kRowsOfSumThread = 8;
// The second kernel, add_partial_sums_kernel, sums kSumColumns columns in each block of threads.
// The partial sums of a column are divided into kSumSlices slices, one per thread.
inline constexpr int kSumColumns = 8;
inline constexpr int kSumSlices = kThreads / kSumColumns;

inline ColumnGrid column_sums_grid(std::int64_t rows, int channels, int width) {
  return column_grid(rows, channels, width, kMostBlocksAtOnce, kRowsOfSumThread);
}

// Returns the bytes of scratch memory that column_sums() needs, enough for every type and
// alignment. sums: the number of sums per channel, Terms::kSums.
inline std::int64_t column_sums_scratch(std::int64_t rows, int channels, int sums) {
  int row_blocks = 1;
  for (const int width : {1, 4, 8}) {
    row_blocks = std::max(row_blocks, column_sums_grid(rows, channels, width).row_blocks);
  }
  return static_cast<std::int64_t>(row_blocks) * sums * channels *
         static_cast<std::int64_t>(sizeof(double));
}

// The type of the result of Terms::constants() (column_sums_kernel) if the sums need no constants
// per channel.
struct NoConstants {};

// A base class of Terms (column_sums_kernel) that need no constants, or no step after the last row.
struct PlainTerms {
  template <int kWidth>
  __device__ NoConstants constants(int /*channel*/) const {
    return {};
  }
  template <int kWidth, typename Sums>
  __device__ void finish(int /*channel*/, Sums& /*sums*/) const {}
};

// Column sums take two kernels. This kernel sums over blocks of rows and writes the sums to partial
// [row_blocks][kSums][channels]. A pack is kWidth adjacent channels of a row, which a thread reads
// at once. Terms defines what is summed, by these members:
// - kSums: the number of sums per channel.
// - kRowsAtOnce: the number of rows that a thread reads before it uses the first of them.
// - constants<kWidth>(channel): returns the constants of the pack that begins at `channel`.
// - read<kWidth>(first): returns the pack that begins at index `first` of the map.
// - add(first, inputs, constants, sums): adds the terms of a pack to sums, float[kSums][kWidth],
//   where `inputs` is the result of read(first).
// - finish<kWidth>(channel, sums): called after a thread's last row.
template <int kWidth, typename Terms>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    column_sums_kernel(Terms terms, ColumnGrid grid, double* partial) {
  const ColumnPlace place = column_place<kWidth>(grid);
  float sums[Terms::kSums][kWidth] = {};
  if (!place.idle) {
    const auto constants = terms.template constants<kWidth>(place.channel);
    for_packs_of_thread<Terms::kRowsAtOnce>(
        place, grid, [&](std::int64_t first) { return terms.template read<kWidth>(first); },
        [&](std::int64_t first, const auto& inputs) { terms.add(first, inputs, constants, sums); });
    terms.template finish<kWidth>(place.channel, sums);
  }
  __shared__ float tile[kThreads * kWidth];  // partial sums: [rows of the block][lanes][kWidth]
  const int columns = grid.lanes * kWidth;
  const int first_channel = static_cast<int>(blockIdx.x) * columns;
  const int rows_of_block = kThreads / grid.lanes;
  for (int s = 0; s < Terms::kSums; ++s) {
    for (int i = 0; i < kWidth; ++i) {
      tile[static_cast<int>(threadIdx.x) * kWidth + i] = sums[s][i];
    }
    __syncthreads();
    for (int column = static_cast<int>(threadIdx.x); column < columns; column += kThreads) {
      if (first_channel + column >= grid.channels) break;
      double total = 0.0;
      for (int row = 0; row < rows_of_block; ++row) {
        total += static_cast<double>(tile[row * columns + column]);
      }
      const std::int64_t line = static_cast<std::int64_t>(blockIdx.y) * Terms::kSums + s;
      partial[line * grid.channels + first_channel + column] = total;
    }
    __syncthreads();
  }
}

// Column sums take two kernels. This kernel adds the partial sums of the first kernel: out[column]
// = sum over all row blocks b of partial[b][column], added in f64. Writes `count` to count_out
// unless count_out is null.
template <typename Out>
__global__ void __launch_bounds__(kThreads)
    add_partial_sums_kernel(const double* partial, int row_blocks, int columns, Out* out,
                            double* count_out, double count) {
  __shared__ double slices[kThreads];
  const int lane = static_cast<int>(threadIdx.x) % kSumColumns;
  const int slice = static_cast<int>(threadIdx.x) / kSumColumns;
  const int column = static_cast<int>(blockIdx.x) * kSumColumns + lane;
  double total = 0.0;
  if (column < columns) {
#pragma unroll 4
    for (int block = slice; block < row_blocks; block += kSumSlices) {
      total += partial[static_cast<std::int64_t>(block) * columns + column];
    }
  }
  slices[threadIdx.x] = total;
  __syncthreads();
  if (slice == 0 && column < columns) {
    for (int s = 1; s < kSumSlices; ++s) total += slices[s * kSumColumns + lane];
    out[column] = static_cast<Out>(total);
  }
  if (count_out != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *count_out = count;
}

// Computes sums over the rows of a map [rows, channels] by column_sums_kernel and
// add_partial_sums_kernel, and writes them to out [kSums][channels]. terms: what is summed
// (column_sums_kernel). With rows = 0, all sums are zero. If count_out is not null, writes `rows`
// to it.
template <typename T, typename Terms, typename Out>
void column_sums(const char* name, const Terms& terms, std::int64_t rows, int channels,
                 bool vectors, void* scratch, Out* out, double* count_out, cudaStream_t stream) {
  with_width<T>(vectors, [&](auto width) {
    const ColumnGrid grid = column_sums_grid(rows, channels, width);
    const dim3 blocks(static_cast<unsigned>(grid.tiles), static_cast<unsigned>(grid.row_blocks));
    auto* const partial = static_cast<double*>(scratch);
    launch({name, blocks, kThreads, stream}, column_sums_kernel<width.value, Terms>, terms, grid,
           partial);
    const int columns = Terms::kSums * channels;
    const auto sum_blocks = static_cast<unsigned>((columns + kSumColumns - 1) / kSumColumns);
    launch({name, dim3(sum_blocks), kThreads, stream}, add_partial_sums_kernel<Out>, partial,
           grid.row_blocks, columns, out, count_out, static_cast<double>(rows));
  });
}

}  // namespace syncopate::cuda
