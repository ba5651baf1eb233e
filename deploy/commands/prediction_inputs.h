// The samples that `syncopate predict` reads: pictures and .npy files, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/graph/graph.h"

namespace syncopate {

// One file of samples for a network. One thread only.
class PredictionInput {
 public:
  virtual ~PredictionInput() = default;
  virtual std::int64_t size() const noexcept = 0;
  // True for an array of several samples; false for a file that is one sample.
  virtual bool has_rows() const noexcept { return false; }
  // Fills `sample`, all bytes of the network's input. Throws FileError.
  virtual void read(std::int64_t index, std::span<std::byte> sample) = 0;
};

// Opens a file: a .npy file by its name, else a picture. input: the network's input. Throws
// UsageError if the network does not take such samples, and FileError if the file cannot be read.
std::unique_ptr<PredictionInput> open_prediction_input(const std::string& path, const Node& input,
                                                       bool apply_exif);

}  // namespace syncopate
