// The targets of all samples in memory: one class per sample, or K numbers per sample. Used by
// npy:DIR and csv:FILE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/input/array/npy_file.h"
#include "worker/input/sample.h"

namespace syncopate {

struct Targets {
  std::vector<std::int32_t> labels;  // empty if the targets are numbers
  std::vector<float> numbers;        // [size(), numbers_per_sample], finite
  std::int64_t numbers_per_sample = 0;

  bool are_numbers() const noexcept { return numbers_per_sample > 0; }
  std::int64_t size() const noexcept {
    return are_numbers() ? static_cast<std::int64_t>(numbers.size()) / numbers_per_sample
                         : static_cast<std::int64_t>(labels.size());
  }
  // Returns the class of a sample, or 0 if the targets are numbers.
  std::int32_t label(std::int64_t index) const;
  // Copies the target of a sample, i32 or f32, to `target`.
  void read(std::int64_t index, std::span<std::byte> target) const;
  // Returns a hash of the numbers of a sample's target. Returns 0 if the targets are classes, which
  // callers compare by label().
  std::uint64_t fingerprint(std::int64_t index) const;
  // Returns the spec of samples with one input of this shape and type, and these targets.
  SampleSpec spec_of(Shape sample_shape, DType dtype, int num_classes) const;
};

// Reads the targets of a file. An array float32 [N] or [N, K] gives numbers; for other types
// returns the classes of read_npy_labels(). Throws FileError naming path and byte of a number that
// is not finite, and what read_npy_labels() throws.
Targets read_npy_targets(const NpyFile& file);

}  // namespace syncopate
