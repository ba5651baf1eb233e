// Groups of a convolution that are computed as one, because oneDNN is fast only where the channels
// of a group fill whole blocks. A header of its own: the convolutions and the copies of their
// weights both need it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace syncopate {

// Each `count` neighbouring groups of a weight [K, R, S, C / groups] become one. The joined weight
// [K, R, S, count * C / groups] has zeros where an output channel does not read an input channel.
struct JoinedGroups {
  std::int64_t rows = 0;            // K * R * S
  std::int64_t rows_per_group = 0;  // of the convolution's own groups
  std::int64_t channels = 0;        // C / groups
  std::int64_t count = 1;

  std::int64_t joined_elements() const { return rows * channels * count; }
  // Writes the elements of the weight; the zeros between them stay as they are.
  void join(const float* weight, float* joined) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(weight + row * channels, channels, joined + place_of(row));
    }
  }
  // Returns to the weight its elements of the joined weight.
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

// Returns how many of a convolution's groups are joined, of c to k channels, with `block` channels
// per block. A depthwise convolution has fast code of its own. Without blocked channels, samples
// have no fast code for groups at all.
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
