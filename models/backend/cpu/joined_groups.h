// Computes several groups of a convolution as one larger group, because oneDNN is fast only if the
// channels of a group fill whole blocks. This is a separate header because ConvolutionGroup and
// PackedWeights both use it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace syncopate {

// Joins every `count` neighbouring groups of a convolution's weight [K, R, S, C / groups] into one
// group. The joined weight [K, R, S, count * C / groups] has zeros where an output channel does not
// read an input channel.
struct JoinedGroups {
  std::int64_t rows = 0;            // K * R * S
  std::int64_t rows_per_group = 0;  // rows of one group before joining
  std::int64_t channels = 0;        // C / groups
  std::int64_t count = 1;

  std::int64_t joined_elements() const { return rows * channels * count; }
  // Copies the elements of `weight` to their places in `joined`. Does not write the elements of
  // `joined` that have no element of `weight`, which must be 0.
  void join(const float* weight, float* joined) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(weight + row * channels, channels, joined + place_of(row));
    }
  }
  // Copies the elements of `weight` from their places in the joined weight `joined`; the inverse of
  // join().
  void separate(const float* joined, float* weight) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(joined + place_of(row), channels, weight + row * channels);
    }
  }

 private:
  std::int64_t place_of(std::int64_t row) const {
    return (row * count + row / rows_per_group % count) * channels;
  }
};

// Returns how many groups of a convolution from c to k channels are joined into one, with `block`
// channels per block. Returns 1 for a depthwise convolution, for which oneDNN has fast code.
// Returns `groups` if the input has no blocked channels, because oneDNN then has no fast code for
// groups.
inline std::int64_t groups_to_join(std::int64_t c, std::int64_t k, std::int64_t groups, int block,
                                   bool is_blocked) {
  if (groups == 1 || (is_blocked && c == groups && k == groups)) return 1;
  for (std::int64_t count = 1; count < groups && is_blocked; ++count) {
    const bool fills_blocks =
        count * (c / groups) % block == 0 && count * (k / groups) % block == 0;
    if (groups % count == 0 && fills_blocks) return count;
  }
  return groups;
}

}  // namespace syncopate
